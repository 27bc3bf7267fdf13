#include "intercept/libraries/faces/shared.h"

#include <cuda.h>

#include <bit>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

namespace vgpu::client::faces {

namespace {

// Marks the library as a face (intercept/patch/face.h).
[[gnu::section("vgpu_face"), gnu::used, gnu::retain]] const char isFace = 1;

// As in cuBLAS 13.1.
struct Status {
  int number;
  const char* name;
  const char* text;
};
constexpr Status all[] = {
    {0, "CUBLAS_STATUS_SUCCESS", "success"},
    {1, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {3, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {7, "CUBLAS_STATUS_INVALID_VALUE", "an unsupported value or parameter was passed to the function"},
    {8, "CUBLAS_STATUS_ARCH_MISMATCH", "the function requires an architectural feature absent from the device"},
    {11, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {13, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"},
    {14, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {15, "CUBLAS_STATUS_NOT_SUPPORTED", "the requested functionality is not supported"},
    {16, "CUBLAS_STATUS_LICENSE_ERROR", "the license check failed"},
};
constexpr int success = 0, allocFailed = 3, invalidValue = 7, mappingError = 11, notSupported = 15;

const Status* find(int number) {
  for (auto& status : all)
    if (status.number == number) return &status;
  return nullptr;
}

// Makes the device's primary context current if the thread has none, as the library's entries do.
CUresult takeContext() {
  CUcontext context = nullptr;
  if (cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr) return CUDA_SUCCESS;
  CUdevice device = 0;
  if (CUresult error = cuInit(0)) return error;
  if (CUresult error = cuDeviceGet(&device, 0)) return error;
  if (CUresult error = cuDevicePrimaryCtxRetain(&context, device)) return error;
  return cuCtxSetCurrent(context);
}

int statusOf(CUresult result) {
  return result == CUDA_SUCCESS ? success : result == CUDA_ERROR_OUT_OF_MEMORY ? allocFailed : mappingError;
}

}  // namespace

int refuse(const char* symbol) {
  // Never destroyed: static destructors may still call this.
  static auto& mutex = *new std::mutex;
  static auto& said = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (said.insert(symbol).second) fprintf(stderr, "vgpu: %s is not supported; it returns CUBLAS_STATUS_NOT_SUPPORTED\n", symbol);
  return notSupported;
}

const char* nameOfStatus(int status) {
  auto* found = find(status);
  return found == nullptr ? "unrecognized status" : found->name;
}

const char* textOfStatus(int status) {
  auto* found = find(status);
  return found == nullptr ? "unrecognized status" : found->text;
}

int copyMatrix(Direction direction, int64_t rows, int64_t columns, int64_t elementBytes, const void* source, int64_t from,
               void* destination, int64_t to, void* stream, Wait wait) {
  if (rows < 0 || columns < 0 || elementBytes <= 0 || from <= 0 || to <= 0) return invalidValue;
  if (rows == 0 || columns == 0) return success;
  if (from < rows || to < rows) return mappingError;
  if (from == rows && to == rows) {  // contiguous columns are one column
    rows *= columns;
    from = to = rows;
    columns = 1;
  }
  if (CUresult error = takeContext()) return statusOf(error);
  CUDA_MEMCPY2D copy{};
  const bool down = direction == Direction::toDevice;
  copy.srcMemoryType = down ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = down ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  copy.srcHost = down ? source : nullptr;
  copy.srcDevice = down ? 0 : std::bit_cast<CUdeviceptr>(source);
  copy.dstHost = down ? nullptr : destination;
  copy.dstDevice = down ? std::bit_cast<CUdeviceptr>(destination) : 0;
  copy.srcPitch = static_cast<size_t>(from * elementBytes);
  copy.dstPitch = static_cast<size_t>(to * elementBytes);
  copy.WidthInBytes = static_cast<size_t>(rows * elementBytes);
  copy.Height = static_cast<size_t>(columns);
  return statusOf(wait == Wait::waits ? cuMemcpy2DUnaligned_v2(&copy)
                                      : cuMemcpy2DAsync_v2(&copy, static_cast<CUstream>(stream)));
}

}  // namespace vgpu::client::faces
