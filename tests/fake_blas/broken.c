/* A BLAS library whose products write nothing, so that it fails its self-test. */
float cblas_sdot(void) { return 76; }
double cblas_ddot(void) { return 76; }
void cblas_sgemm(void) {}
void cblas_dgemm(void) {}
void cblas_sgemv(void) {}
void cblas_dgemv(void) {}
