// Starts and stops callgrind's counting from inside the measured process: only fits are counted, not imports.
#include <valgrind/callgrind.h>

extern "C" {

void counting_start() {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

// The counts since the start go to a file of their own, which names the reason.
void counting_stop(const char* reason) {
    CALLGRIND_DUMP_STATS_AT(reason);
    CALLGRIND_STOP_INSTRUMENTATION;
}

}  // extern "C"
