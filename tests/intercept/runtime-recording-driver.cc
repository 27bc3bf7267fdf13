// A libcuda.so.1 for the tests of libcudart: it has no device, but a record. Every call appends its name to the file that VGPU_TEST_CALLS
// names, so a test sees which driver calls the runtime made, in order. Memory is the process's own, kernels do nothing.
// VGPU_TEST_FAIL=call:number makes one function fail, or only the calls whose line in the record is `call`.
#include <cuda.h>
#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int devices = 2;
// Stand-ins for handles: only their addresses matter.
char contexts[devices], module_, function_;
char variables[4096] __attribute__((aligned(256)));
thread_local void* current = nullptr;

void record(const std::string& line) {
  const char* path = getenv("VGPU_TEST_CALLS");
  if (path == nullptr) return;
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  std::string text = line + "\n";
  if (write(file, text.data(), text.size()) < 0) abort();
  close(file);
}

// Success, unless VGPU_TEST_FAIL names this function.
CUresult called(const char* name, const std::string& detail = "") {
  std::string line = detail.empty() ? name : name + (" " + detail);
  record(line);
  const char* wanted = getenv("VGPU_TEST_FAIL");
  std::string fail = wanted == nullptr ? "" : wanted;
  size_t colon = fail.rfind(':');
  bool failing = colon != fail.npos && (fail.substr(0, colon) == name || fail.substr(0, colon) == line);
  return failing ? static_cast<CUresult>(atoi(&fail[colon + 1])) : CUDA_SUCCESS;
}

template <class T>
T handleAt(void* place) {
  return static_cast<T>(place);
}

void* at(CUdeviceptr address) { return std::bit_cast<void*>(address); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuInit(unsigned) { return called("cuInit"); }
CUresult cuDriverGetVersion(int* version) { return *version = 13000, called("cuDriverGetVersion"); }
CUresult cuDeviceGetCount(int* count) { return *count = devices, CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      *value = 64;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      *value = 0x7fffffff;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      *value = 65535;
      break;
    default:
      *value = 1024;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) { return strncpy(name, "recorder", length), CUDA_SUCCESS; }
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice) { return memset(uuid, 7, sizeof *uuid), CUDA_SUCCESS; }
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) { return *bytes = size_t{1} << 30, CUDA_SUCCESS; }

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  void* place = &contexts[device];
  *context = handleAt<CUcontext>(place);
  return called("cuDevicePrimaryCtxRetain", std::to_string(device));
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return called("cuDevicePrimaryCtxRelease"); }
CUresult cuDevicePrimaryCtxReset_v2(CUdevice) { return called("cuDevicePrimaryCtxReset"); }
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  return *flags = 0, *active = 1, CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) { return *context = handleAt<CUcontext>(current), CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext context) { return current = context, called("cuCtxSetCurrent"); }
CUresult cuCtxPushCurrent_v2(CUcontext context) { return current = context, CUDA_SUCCESS; }
CUresult cuCtxPopCurrent_v2(CUcontext*) { return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = current == &contexts[1] ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() { return called("cuCtxSynchronize"); }

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  *address = std::bit_cast<CUdeviceptr>(malloc(bytes));
  return called("cuMemAlloc", std::to_string(bytes));
}
CUresult cuMemFree_v2(CUdeviceptr address) { return free(at(address)), called("cuMemFree"); }
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return memcpy(at(to), from, bytes), called("cuMemcpyHtoD", std::to_string(bytes));
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return memcpy(to, at(from), bytes), called("cuMemcpyDtoH", std::to_string(bytes));
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  memcpy(at(to), from, bytes);
  return called("cuMemcpyHtoDAsync", std::to_string(std::bit_cast<size_t>(stream)));
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  memcpy(to, at(from), bytes);
  return called("cuMemcpyDtoHAsync", std::to_string(std::bit_cast<size_t>(stream)));
}

CUresult load(const void* image, const char* name) {
  unsigned magic;
  memcpy(&magic, image, sizeof magic);
  return magic != 0xba55ed50 ? CUDA_ERROR_INVALID_IMAGE : called(name);
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  void* place = &module_;
  *module = handleAt<CUmodule>(place);
  return load(image, "cuModuleLoadData");
}
CUresult cuModuleUnload(CUmodule) { return called("cuModuleUnload"); }
CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, unsigned) {
  void* place = &module_;
  *library = handleAt<CUlibrary>(place);
  return load(image, "cuLibraryLoadData");
}
CUresult cuLibraryGetModule(CUmodule* module, CUlibrary) {
  void* place = &module_;
  *module = handleAt<CUmodule>(place);
  return called("cuLibraryGetModule");
}
CUresult cuLibraryUnload(CUlibrary) { return called("cuLibraryUnload"); }
CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule, const char* name) {
  *address = std::bit_cast<CUdeviceptr>(&variables[0]) + 64 * (name[0] % 16);
  *bytes = 4;
  return called("cuModuleGetGlobal", name);
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  void* place = &function_;
  *function = handleAt<CUfunction>(place);
  return called("cuModuleGetFunction", name);
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? 48 << 10 : 1024;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction, unsigned gridX, unsigned, unsigned, unsigned blockX, unsigned, unsigned,
                        unsigned shared, CUstream stream, void**, void**) {
  static const bool recording = getenv("VGPU_TEST_CALLS") != nullptr;
  if (!recording) return CUDA_SUCCESS;  // for the benchmark: only the cost of the call
  return called("cuLaunchKernel", std::to_string(gridX) + " " + std::to_string(blockX) + " " + std::to_string(shared) +
                                      " " + std::to_string(std::bit_cast<size_t>(stream)));
}

CUresult cuStreamSynchronize(CUstream stream) {
  return called("cuStreamSynchronize", std::to_string(std::bit_cast<size_t>(stream)));
}
CUresult cuStreamQuery(CUstream) { return called("cuStreamQuery"); }
CUresult cuEventQuery(CUevent) { return called("cuEventQuery"); }

}  // extern "C"
#pragma GCC visibility pop
