/* What OpenBLAS and BLIS have besides products, of a library that computes none. Preloaded. */
#include <stdio.h>

__attribute__((constructor)) static void load(void) { fprintf(stderr, "other: loaded\n"); }

const char *openblas_get_config(void) { return "OpenBLAS 8.8.8 other"; }
const char *openblas_get_corename(void) { return "other"; }
int openblas_get_num_threads(void) { return 8; }
void openblas_set_num_threads(int n) { fprintf(stderr, "other: %d threads\n", n); }

const char *bli_info_get_version_str(void) { return "8.8.8 other"; }
long bli_thread_get_num_threads(void) { return 8; }
void bli_thread_set_num_threads(long n) { fprintf(stderr, "other: %ld threads\n", n); }
void bli_thread_set_ways(long a, long b, long c, long d, long e) {
    fprintf(stderr, "other: %ld ways\n", a * b * c * d * e);
}
