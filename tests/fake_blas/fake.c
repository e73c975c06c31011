/* A correct, slow BLAS library that reports itself as OpenBLAS with eight threads and the kernels
 * that FAKE_CORE names. FAKE_FAULT selects a fault. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char core[64];
static int threads = 8;

__attribute__((constructor)) static void load(void) {
    const char *asked = getenv("OPENBLAS_CORETYPE");
    const char *own = getenv("FAKE_CORE");
    snprintf(core, sizeof core, "%s", asked ? asked : own ? own : "SkylakeX");
    fprintf(stderr, "fake: loaded, OPENBLAS_CORETYPE=%s\n", asked ? asked : "");
}

static int fault(const char *name) {
    const char *asked = getenv("FAKE_FAULT");
    return asked && strcmp(asked, name) == 0;
}

const char *openblas_get_config(void) { return "OpenBLAS 9.9.9 fake"; }
const char *openblas_get_corename(void) { return core; }
int openblas_get_num_threads(void) { return threads; }
void openblas_set_num_threads(int n) { threads = n; }

static void called(void) {
    if (threads != 1) fprintf(stderr, "fake: called with %d threads\n", threads);
}

enum { PLAIN = 111 };

#define FUNCTIONS(letter, T)                                                                              \
    static T letter##_at(const T *x, int op, int ld, int i, int j) {                                      \
        return op == PLAIN ? x[i * ld + j] : x[j * ld + i];                                               \
    }                                                                                                     \
    T cblas_##letter##dot(int n, const T *x, int step_x, const T *y, int step_y) {                        \
        T sum = fault("dot") ? 1 : 0;                                                                     \
        if (fault("wide")) return 0; /* as 2 - 2^32 products */                                           \
        for (int i = 0; i < n; i++) sum += x[i * step_x] * y[i * step_y];                                 \
        return sum;                                                                                       \
    }                                                                                                     \
    void cblas_##letter##gemm(int order, int op_a, int op_b, int m, int n, int k, T alpha, const T *a,    \
                              int lda, const T *b, int ldb, T beta, T *c, int ldc) {                      \
        (void)order;                                                                                      \
        called();                                                                                         \
        if (fault("early") && m == 20) {                                                                  \
            fprintf(stderr, "fake: returned early\n");                                                    \
            return;                                                                                       \
        }                                                                                                 \
        for (int i = 0; i < m; i++) {                                                                     \
            for (int j = 0; j < n; j++) {                                                                 \
                T sum = 0, *to = &c[i * ldc + j];                                                         \
                for (int p = fault("terms") && k > 3; p < k; p++)                                         \
                    sum += letter##_at(a, op_a, lda, i, p) * letter##_at(b, op_b, ldb, p, j);             \
                int reads = beta != 0 || (fault("tile") && m > 5);                                        \
                *to = reads ? alpha * sum + beta * *to : alpha * sum;                                     \
            }                                                                                             \
        }                                                                                                 \
        if (fault("gap")) c[n] = 7;                                                                       \
    }                                                                                                     \
    void cblas_##letter##gemv(int order, int op, int m, int n, T alpha, const T *a, int lda, const T *x,  \
                              int step_x, T beta, T *y, int step_y) {                                     \
        (void)order;                                                                                      \
        called();                                                                                         \
        int rows = op == PLAIN ? m : n, terms = op == PLAIN ? n : m;                                      \
        for (int i = 0; i < rows; i++) {                                                                  \
            T sum = 0, *to = &y[i * step_y];                                                              \
            for (int p = 0; p < terms; p++) sum += letter##_at(a, op, lda, i, p) * x[p * step_x];         \
            *to = beta == 0 && !fault("reads") ? alpha * sum : alpha * sum + beta * *to;                  \
        }                                                                                                 \
    }

FUNCTIONS(s, float)
FUNCTIONS(d, double)
