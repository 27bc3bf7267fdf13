// A program without device code that nvcc links: it has the sections of code for devices, and registers none.
#include <cuda_runtime_api.h>

int main() { return cudaFree(nullptr) == cudaSuccess ? 0 : 1; }
