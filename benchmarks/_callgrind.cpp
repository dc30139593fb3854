// Starts and stops callgrind's counting from inside the measured process, so that only fits are counted, not imports.
#include <valgrind/callgrind.h>

extern "C" {

void counting_start() {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

// Writes the counts since the start to a separate file, which contains the reason.
void counting_stop(const char* reason) {
    CALLGRIND_DUMP_STATS_AT(reason);
    CALLGRIND_STOP_INSTRUMENTATION;
}

}  // extern "C"
