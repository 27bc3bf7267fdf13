// The driver API, used by a program that must also start without a driver: libcuda.so.1 is opened at run time, and every entry is looked up
// with cuGetProcAddress by name and version.
#include "program.h"

#include <cudaTypedefs.h>
#include <dlfcn.h>

PFN_cuGetProcAddress_v12000 getProcAddress;

// The entry `name` as of CUDA `version`; ends the program if there is none.
template <typename Entry>
Entry find(const char* name, int version) {
  void* entry = nullptr;
  CUdriverProcAddressQueryResult found;
  const CUresult result = getProcAddress(name, &entry, version, CU_GET_PROC_ADDRESS_DEFAULT, &found);
  if (result == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS && entry) return reinterpret_cast<Entry>(entry);
  std::fprintf(stderr, "cuGetProcAddress(%s, %d): result %d, found %d\n", name, version, result, found);
  std::exit(1);
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", what, result);
  std::exit(1);
}

// Missing entries are reported in the status and not as an error: a name that no driver has, and an entry requested for a version before
// its first.
bool absenceIsTold() {
  void* entry = nullptr;
  CUdriverProcAddressQueryResult found;
  const auto flags = CU_GET_PROC_ADDRESS_DEFAULT;
  bool ok = EXPECT(getProcAddress("cuNoSuchEntry", &entry, 13000, flags, &found) == CUDA_SUCCESS) &
            EXPECT(found == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) & EXPECT(entry == nullptr);
  ok &= EXPECT(getProcAddress("cuLaunchKernel", &entry, 3000, flags, &found) == CUDA_SUCCESS) &
        EXPECT(found == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) & EXPECT(entry == nullptr);
  return ok;
}

int main() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  getProcAddress = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (!EXPECT(getProcAddress != nullptr)) return 1;
  const auto setBytes = find<PFN_cuMemsetD8_v3020>("cuMemsetD8", 3020);
  const auto setWords = find<PFN_cuMemsetD32_v3020>("cuMemsetD32", 3020);
  const auto copyToHost = find<PFN_cuMemcpyDtoH_v3020>("cuMemcpyDtoH", 3020);

  CUdevice device;
  CUcontext context, current = nullptr;
  int version = 0;
  check(find<PFN_cuInit_v2000>("cuInit", 2000)(0), "cuInit");
  check(find<PFN_cuDriverGetVersion_v2020>("cuDriverGetVersion", 2020)(&version), "cuDriverGetVersion");
  check(find<PFN_cuDeviceGet_v2000>("cuDeviceGet", 2000)(&device, 0), "cuDeviceGet");
  check(find<PFN_cuDevicePrimaryCtxRetain_v7000>("cuDevicePrimaryCtxRetain", 7000)(&context, device), "retain");
  check(find<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent", 4000)(context), "cuCtxSetCurrent");
  check(find<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent", 4000)(&current), "cuCtxGetCurrent");
  bool ok = absenceIsTold() & EXPECT(version >= 13000) & EXPECT(current == context);

  const size_t words = 1 << 16;
  CUdeviceptr memory;
  check(find<PFN_cuMemAlloc_v3020>("cuMemAlloc", 3020)(&memory, words * sizeof(unsigned)), "cuMemAlloc");
  check(setWords(memory, 0x01020304, words), "cuMemsetD32");
  pausePoint();
  check(setBytes(memory + 2, 0xab, 1), "cuMemsetD8");
  std::vector<unsigned> got(words), expected(words, 0x01020304);
  expected[0] = 0x01ab0304;
  check(copyToHost(got.data(), memory, words * sizeof(unsigned)), "cuMemcpyDtoH");
  ok &= same("words", got, expected);
  check(find<PFN_cuMemFree_v3020>("cuMemFree", 3020)(memory), "cuMemFree");
  check(find<PFN_cuDevicePrimaryCtxRelease_v11000>("cuDevicePrimaryCtxRelease", 11000)(device), "release");
  return verdict("driver-getproc", ok);
}
