// The bank size of shared memory, which has been fixed since Maxwell: a request is checked and has no effect.
#include "intercept/session/entry.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

bool isKnown(CUsharedconfig config) {
  return config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE && config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuCtxGetSharedMemConfig(CUsharedconfig* pConfig) {
  return enter([&](Thread&) -> CUresult {
    if (pConfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return enter([&](Thread&) { return isKnown(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; });
}

VGPU_EXPORT CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config) {
  return enter([&](Thread& thread) -> CUresult {
    if (thread.session.handles.find(api::Kind::FUNCTION, toWire(hfunc)) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return isKnown(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // extern "C"
