// A program without device code that nvcc links: it has the sections for device code, but registers none.
#include <cuda_runtime_api.h>

int main() { return cudaFree(nullptr) == cudaSuccess ? 0 : 1; }
