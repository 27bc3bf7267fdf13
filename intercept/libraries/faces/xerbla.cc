// The error handler of the reference BLAS, which programs may call themselves.
#include <cstdio>

extern "C" __attribute__((visibility("default"))) void cublasXerbla(const char* name, int parameter) {
  fprintf(stderr, " ** On entry to %-6s parameter number %2d had an illegal value\n", name == nullptr ? "" : name, parameter);
}
