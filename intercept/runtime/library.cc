// Libraries loaded at run time, and lookup of the driver's functions.
#include "intercept/runtime/convert.h"
#include "intercept/runtime/registry.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

static_assert(static_cast<int>(cudaLibraryBinaryIsPreserved) == CU_LIBRARY_BINARY_IS_PRESERVED);
static_assert(static_cast<int>(cudaJitOptimizationLevel) == CU_JIT_OPTIMIZATION_LEVEL);
static_assert(static_cast<int>(cudaDriverEntryPointVersionNotSufficent) == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);

/// The launch functions accept such a kernel in place of a host function, so it is registered.
CUresult findKernelIn(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  CUresult result = cuLibraryGetKernel(kernel, library, name);
  if (result == CUDA_SUCCESS) registerKernel(*kernel, library);
  return result;
}

CUresult enumerate(cudaKernel_t* kernels, unsigned room, cudaLibrary_t library) {
  unsigned count = 0;
  if (CUresult result = cuLibraryGetKernelCount(&count, library); result != CUDA_SUCCESS) return result;
  CUresult result = cuLibraryEnumerateKernels(kernels, room, library);
  for (unsigned i = 0; result == CUDA_SUCCESS && i < room && i < count; ++i) registerKernel(kernels[i], library);
  return result;
}

CUresult unloadLibrary(cudaLibrary_t library) {
  CUresult result = cuLibraryUnload(library);
  if (result == CUDA_SUCCESS) removeKernels(library);
  return result;
}

/// Passes the driver a status even if the caller passes none: then a function that does not exist is no error, as in the driver.
template <class On>
CUresult findEntry(const char* symbol, void** function, int version, unsigned long long flags,
                   cudaDriverEntryPointQueryResult* status, On on) {
  if (flags == cudaEnableDefault && on.perThread) flags = cudaEnablePerThreadDefaultStream;
  int known = 0;
  if (CUresult error = cuDriverGetVersion(&known)) return error;
  if (version > known) return CUDA_ERROR_INVALID_VALUE;
  cudaDriverEntryPointQueryResult unasked;
  return cuGetProcAddress(symbol, function, version, flags,
                          same<CUdriverProcAddressQueryResult>(status != nullptr ? status : &unasked));
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME(cudaLibraryLoadData,
        (cudaLibrary_t * library, const void* code, cudaJitOption* jitOptions, void** jitValues, unsigned jitCount,
         cudaLibraryOption* options, void** values, unsigned count),
        cuLibraryLoadData(library, code, same<CUjit_option>(jitOptions), jitValues, jitCount,
                          same<CUlibraryOption>(options), values, count))
RUNTIME(cudaLibraryLoadFromFile,
        (cudaLibrary_t * library, const char* path, cudaJitOption* jitOptions, void** jitValues, unsigned jitCount,
         cudaLibraryOption* options, void** values, unsigned count),
        cuLibraryLoadFromFile(library, path, same<CUjit_option>(jitOptions), jitValues, jitCount,
                              same<CUlibraryOption>(options), values, count))
RUNTIME(cudaLibraryUnload, (cudaLibrary_t library), unloadLibrary(library))
RUNTIME(cudaLibraryGetKernel, (cudaKernel_t * kernel, cudaLibrary_t library, const char* name),
        findKernelIn(kernel, library, name))
RUNTIME(cudaLibraryGetKernelCount, (unsigned* count, cudaLibrary_t library), cuLibraryGetKernelCount(count, library))
RUNTIME(cudaLibraryEnumerateKernels, (cudaKernel_t * kernels, unsigned room, cudaLibrary_t library),
        enumerate(kernels, room, library))
RUNTIME(cudaLibraryGetGlobal, (void** address, size_t* bytes, cudaLibrary_t library, const char* name),
        cuLibraryGetGlobal(addressOut(address), bytes, library, name))
RUNTIME(cudaLibraryGetManaged, (void** address, size_t* bytes, cudaLibrary_t library, const char* name),
        cuLibraryGetManaged(addressOut(address), bytes, library, name))
RUNTIME(cudaLibraryGetUnifiedFunction, (void** function, cudaLibrary_t library, const char* name),
        cuLibraryGetUnifiedFunction(function, library, name))
RUNTIME(cudaGetKernel, (cudaKernel_t * kernel, const void* function), getKernel(function, kernel))

RUNTIME_ENTRIES(cudaGetDriverEntryPoint,
               (const char* symbol, void** function, unsigned long long flags, cudaDriverEntryPointQueryResult* status),
               findEntry(symbol, function, CUDART_VERSION, flags, status, on))
RUNTIME_ENTRIES(cudaGetDriverEntryPointByVersion,
               (const char* symbol, void** function, unsigned version, unsigned long long flags,
                cudaDriverEntryPointQueryResult* status),
               findEntry(symbol, function, static_cast<int>(version), flags, status, on))
