// Names of CUDA's errors, from cuda.h itself at build time.
#include <cuda.h>

#include "intercept/session/entry.h"

namespace {

const char* nameOfError(CUresult error) {
  switch (error) {
#define ERROR(name) \
  case name: return #name;
#include "cuda-errors.inc"
#undef ERROR
    default: return nullptr;
  }
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuGetErrorName(CUresult error, const char** pStr) {
  if (pStr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pStr = nameOfError(error);
  return *pStr != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

VGPU_EXPORT CUresult CUDAAPI cuGetErrorString(CUresult error, const char** pStr) { return cuGetErrorName(error, pStr); }

}  // extern "C"
