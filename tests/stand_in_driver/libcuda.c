/* A libcuda.so.1 whose entry points are the functions that `serve` has been given: see driver.py.

   An entry point is a function of at most 8 integers or pointers. From `close_driver` on each returns success without a
   call, because destructors of cuda-core may run when there is no interpreter any more. */
#include <string.h>

typedef long word;
typedef int entry(word, word, word, word, word, word, word, word);

enum { most = 64 };
static struct {
    char name[64];
    entry *serves;
} table[most];
static int n_entries, closed;

static int call(int number, word a, word b, word c, word d, word e, word f, word g, word h) {
    return closed ? 0 : table[number].serves(a, b, c, d, e, f, g, h);
}

#define ENTRY(n) \
    static int entry_##n(word a, word b, word c, word d, word e, word f, word g, word h) { return call(0##n, a, b, c, d, e, f, g, h); }
#define ROW(n) ENTRY(n##0) ENTRY(n##1) ENTRY(n##2) ENTRY(n##3) ENTRY(n##4) ENTRY(n##5) ENTRY(n##6) ENTRY(n##7)
ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7)

#define NAMES(n) entry_##n##0, entry_##n##1, entry_##n##2, entry_##n##3, entry_##n##4, entry_##n##5, entry_##n##6, entry_##n##7
static entry *const entries[most] = {NAMES(0), NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6), NAMES(7)};

static int number_of(const char *name) {
    int number = 0;
    while (number < n_entries && strcmp(table[number].name, name)) ++number;
    return number;
}

int serve(const char *name, entry *function) {
    if (n_entries == most || strlen(name) >= sizeof table[0].name) return 1;
    strcpy(table[n_entries].name, name);
    table[n_entries++].serves = function;
    return 0;
}

void close_driver(void) { closed = 1; }

/* What cuda-bindings asks for all others. 500: CUDA_ERROR_NOT_FOUND. */
int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, int *status) {
    const int number = number_of(name);
    *found = number < n_entries ? (void *)entries[number] : 0;
    if (status) *status = *found ? 0 : 1;
    return *found ? 0 : 500;
}

int cuGetProcAddress(const char *name, void **found, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(name, found, version, flags, 0);
}
