// Code libraries (cuLibrary*): images loaded without a context, whose kernels are launched in the caller's context.
#include "driver-entry.h"

#include <malloc.h>

#include <cstring>
#include <set>
#include <string>

// add: *total += by, and counts its launches in `launches`; returns both in out[0] and out[1]. scale: out[0] *= factor.
const char* const ptx = R"(
.version 7.5
.target sm_75
.address_size 64

.visible .global .align 4 .u32 launches = 3;

.visible .entry add(.param .u64 out, .param .u32 by)
{
  .reg .b32 %count, %by, %value;
  .reg .b64 %base;
  ld.param.u64 %base, [out];
  ld.param.u32 %by, [by];
  cvta.to.global.u64 %base, %base;
  ld.global.u32 %count, [launches];
  add.u32 %count, %count, 1;
  st.global.u32 [launches], %count;
  ld.global.u32 %value, [%base];
  add.u32 %value, %value, %by;
  st.global.u32 [%base], %value;
  st.global.u32 [%base+4], %count;
  ret;
}

.visible .entry scale(.param .u64 out, .param .u32 factor)
{
  .reg .b32 %factor, %value;
  .reg .b64 %base;
  ld.param.u64 %base, [out];
  ld.param.u32 %factor, [factor];
  cvta.to.global.u64 %base, %base;
  ld.global.u32 %value, [%base];
  mul.lo.u32 %value, %value, %factor;
  st.global.u32 [%base], %value;
  ret;
}
)";

bool launch(CUkernel kernel, unsigned* out, unsigned value, CUstream stream = nullptr) {
  void* parameters[] = {&out, &value};
  return EXPECT(DRIVER(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr) ==
                CUDA_SUCCESS);
}

CUkernel kernelOf(CUlibrary library, const char* name) {
  CUkernel kernel = nullptr;
  CALL(cuLibraryGetKernel, &kernel, library, name);
  return kernel;
}

// Queries about a library.
bool describes(CUlibrary library) {
  unsigned count = 0;
  CUkernel kernels[3] = {}, add = kernelOf(library, "add");
  CALL(cuLibraryGetKernelCount, &count, library);
  CALL(cuLibraryEnumerateKernels, kernels, 3, library);
  bool ok = EXPECT(count == 2) && EXPECT(kernels[2] == nullptr);
  std::set<std::string> names;
  for (unsigned i = 0; i < count; ++i) {
    const char* name = nullptr;
    CUlibrary owner = nullptr;
    CALL(cuKernelGetName, &name, kernels[i]);
    CALL(cuKernelGetLibrary, &owner, kernels[i]);
    names.insert(name);
    ok &= EXPECT(owner == library) && EXPECT(kernels[i] == kernelOf(library, name));
  }
  ok &= EXPECT(names == (std::set<std::string>{"add", "scale"}));
  size_t offset = 0, bytes = 0;
  CALL(cuKernelGetParamInfo, add, 1, &offset, &bytes);
  ok &= EXPECT(offset == 8) && EXPECT(bytes == 4);
  ok &= EXPECT(DRIVER(cuKernelGetParamInfo)(add, 2, &offset, &bytes) == CUDA_ERROR_INVALID_VALUE);
  return ok;
}

// The kernel's function in the current context belongs to the library's module there.
bool belongsTogether(CUlibrary library) {
  CUmodule module = nullptr, ofFunction = nullptr;
  CUfunction function = nullptr, byName = nullptr;
  const char* name = nullptr;
  CUfunctionLoadingState state;
  CALL(cuLibraryGetModule, &module, library);
  CALL(cuKernelGetFunction, &function, kernelOf(library, "add"));
  CALL(cuModuleGetFunction, &byName, module, "add");
  CALL(cuFuncGetModule, &ofFunction, function);
  CALL(cuFuncGetName, &name, function);
  CALL(cuFuncLoad, function);
  CALL(cuFuncIsLoaded, &state, function);
  bool ok = EXPECT(ofFunction == module) && EXPECT(std::string(name) == "add") && EXPECT(state == CU_FUNCTION_LOADING_STATE_LOADED);
  ok &= EXPECT(byName == function);
  CUfunction all[2] = {};
  CALL(cuModuleEnumerateFunctions, all, 2, module);
  ok &= EXPECT(all[0] != all[1]) && EXPECT(all[0] == function || all[1] == function);
  ok &= EXPECT(DRIVER(cuModuleUnload)(module) == CUDA_ERROR_NOT_PERMITTED);  // it ends with the library
  return ok;
}

// Attributes belong to a device, in whichever context the kernel is used.
bool keepsAttributes(CUkernel kernel, CUdevice device) {
  int threads = 0, shared = 0, blocks = 0;
  CALL(cuKernelGetAttribute, &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, device);
  CALL(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 2048, kernel, device);
  CALL(cuKernelSetCacheConfig, kernel, CU_FUNC_CACHE_PREFER_L1, device);
  CALL(cuKernelGetAttribute, &shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, device);
  CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, reinterpret_cast<CUfunction>(kernel), 64, 0);
  return EXPECT(threads >= 32) & EXPECT(shared == 2048) & EXPECT(blocks > 0) &
         EXPECT(DRIVER(cuKernelSetAttribute)(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -2, kernel, device) != CUDA_SUCCESS) &
         EXPECT(DRIVER(cuKernelGetAttribute)(&shared, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 99) == CUDA_ERROR_INVALID_DEVICE);
}

bool refusesWrongUses(CUlibrary library) {
  CUlibrary other = nullptr;
  CUkernel kernel = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  void* function = nullptr;
  auto load = DRIVER(cuLibraryLoadData);
  return EXPECT(load(nullptr, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_ERROR_INVALID_VALUE) &
         EXPECT(load(&other, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_ERROR_INVALID_VALUE) &
         EXPECT(DRIVER(cuLibraryLoadFromFile)(&other, "/nowhere/at-all", nullptr, nullptr, 0, nullptr, nullptr, 0) ==
                CUDA_ERROR_FILE_NOT_FOUND) &
         EXPECT(DRIVER(cuLibraryGetKernel)(&kernel, library, "subtract") == CUDA_ERROR_NOT_FOUND) &
         EXPECT(DRIVER(cuLibraryGetGlobal)(&address, &bytes, library, "nobody") == CUDA_ERROR_NOT_FOUND) &
         EXPECT(DRIVER(cuLibraryGetManaged)(&address, &bytes, library, "launches") == CUDA_ERROR_NOT_FOUND) &
         EXPECT(DRIVER(cuLibraryGetUnifiedFunction)(&function, library, "add") == CUDA_ERROR_INVALID_VALUE) &
         EXPECT(DRIVER(cuLibraryGetKernel)(&kernel, reinterpret_cast<CUlibrary>(0x1234), "add") == CUDA_ERROR_INVALID_HANDLE) &
         EXPECT(DRIVER(cuLibraryUnload)(nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

// The same with the runtime's functions; a launch takes a kernel in place of a function.
bool worksInRuntime(unsigned* out) {
  cudaLibrary_t library;
  cudaKernel_t add;
  unsigned* address = nullptr;
  size_t bytes = 0;
  unsigned by = 5, launches = 0, reset = 0;
  CHECK(cudaLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cudaLibraryGetKernel(&add, library, "add"));
  CHECK(cudaLibraryGetGlobal(reinterpret_cast<void**>(&address), &bytes, library, "launches"));
  CHECK(cudaMemcpy(address, &reset, sizeof reset, cudaMemcpyHostToDevice));
  void* parameters[] = {&out, &by};
  CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(add), dim3(1), dim3(1), parameters, 0, nullptr));
  CHECK(cudaMemcpy(&launches, address, sizeof launches, cudaMemcpyDeviceToHost));
  CHECK(cudaLibraryUnload(library));
  return EXPECT(launches == 1) & EXPECT(bytes == 4);
}

struct PerDevice {
  unsigned* out;
  unsigned sum = 0, launches = 3;
};

// Launches `kernel` on each device, and checks its count of launches there.
bool launchEverywhere(CUkernel kernel, std::vector<PerDevice>& devices) {
  bool ok = true;
  for (int device = 0; device < static_cast<int>(devices.size()); ++device) {
    CHECK(cudaSetDevice(device));
    PerDevice& on = devices[device];
    ok &= launch(kernel, on.out, 10);
    unsigned got[2];
    CHECK(cudaMemcpy(got, on.out, sizeof got, cudaMemcpyDeviceToHost));
    on.sum += 10;
    on.launches += 1;
    ok &= EXPECT(got[0] == on.sum) & EXPECT(got[1] == on.launches);
  }
  CHECK(cudaSetDevice(0));
  return ok;
}

// An attribute set for the kernel on a device applies to its function in any context, looked up by kernel or by name.
bool isSetByName(CUlibrary library) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  int shared = 0;
  CALL(cuLibraryGetModule, &module, library);
  CALL(cuModuleGetFunction, &function, module, "add");
  CALL(cuFuncGetAttribute, &shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
  return EXPECT(shared == 2048);
}

// After a library is unloaded, no copy of its image remains in the program's process.
bool givesImageBack() {
  constexpr size_t imageBytes = 1 << 20;
  std::string image = ptx;
  image += "//" + std::string(imageBytes, ' ');
  const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  for (int i = 0; i < 16; ++i) {
    CUlibrary library;
    CALL(cuLibraryLoadData, &library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    CALL(cuLibraryUnload, library);
  }
  return EXPECT(mallinfo2().uordblks + mallinfo2().hblkhd < before + 8 * imageBytes);
}

// Another context of the device has its own variables, which end with it.
bool hasVariablesInEachContext(CUlibrary library, CUkernel kernel) {
  CUcontext context;
  CUdeviceptr here = 0, there = 0, out = 0;
  size_t bytes = 0;
  CALL(cuLibraryGetGlobal, &here, &bytes, library, "launches");
  bool ok = true;
  for (int round = 0; round < 2; ++round) {
    CALL(cuCtxCreate, &context, nullptr, 0, 0);
    CALL(cuLibraryGetGlobal, &there, &bytes, library, "launches");
    ok &= isSetByName(library);
    CALL(cuMemAlloc, &out, 2 * sizeof(unsigned));
    ok &= EXPECT(there != here) && launch(kernel, reinterpret_cast<unsigned*>(out), 1);
    unsigned launches = 0;
    CALL(cuMemcpyDtoH, &launches, there, sizeof launches);
    ok &= EXPECT(launches == 4);
    CALL(cuCtxDestroy, context);
  }
  return ok;
}

int main() {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  std::vector<PerDevice> devices(count);
  for (int device = count - 1; device >= 0; --device) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaMalloc(&devices[device].out, 2 * sizeof(unsigned)));
    CHECK(cudaMemset(devices[device].out, 0, 2 * sizeof(unsigned)));
  }

  std::string image = ptx;
  CUlibrary library;
  CALL(cuLibraryLoadData, &library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  std::fill(image.begin(), image.end(), '?');  // CUDA has copied it
  CUkernel add = kernelOf(library, "add");
  bool ok = describes(library) & belongsTogether(library) & keepsAttributes(add, 0) & refusesWrongUses(library);
  ok &= launchEverywhere(add, devices);

  pausePoint();

  ok &= launchEverywhere(add, devices);
  ok &= launch(kernelOf(library, "scale"), devices[0].out, 3);  // its first use
  devices[0].sum *= 3;
  ok &= launchEverywhere(add, devices);
  ok &= keepsAttributes(add, 0) & hasVariablesInEachContext(library, add) & worksInRuntime(devices[0].out);

  ok &= givesImageBack();
  CALL(cuLibraryUnload, library);
  unsigned* out = devices[0].out;
  unsigned by = 1;
  void* parameters[] = {&out, &by};
  const char* name = nullptr;
  ok &= EXPECT(DRIVER(cuLaunchKernel)(reinterpret_cast<CUfunction>(add), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) ==
               CUDA_ERROR_INVALID_HANDLE);
  ok &= EXPECT(DRIVER(cuKernelGetName)(&name, add) == CUDA_ERROR_INVALID_HANDLE);
  ok &= EXPECT(DRIVER(cuLibraryUnload)(library) == CUDA_ERROR_INVALID_HANDLE);
  return verdict("code-libraries", ok);
}
