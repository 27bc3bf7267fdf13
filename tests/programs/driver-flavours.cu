// Driver entries in their two flavours: with the null stream as the legacy default stream, or as the calling thread's own. A program
// chooses the flavour with the flags of cuGetProcAddress, or with the entry's own symbol.
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include "driver-entry.h"

namespace {

constexpr cuuint64_t legacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
constexpr cuuint64_t perThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

void* library = nullptr;
PFN_cuGetProcAddress_v12000 getProcAddress = nullptr;

void* ask(const char* name, cuuint64_t flags, int version = 13000) {
  void* entry = nullptr;
  CUdriverProcAddressQueryResult found;
  check(getProcAddress(name, &entry, version, flags, &found), name);
  return entry;
}

unsigned long long idOfNull(void* entry) {
  unsigned long long id = 0;
  check(reinterpret_cast<PFN_cuStreamGetId_v12000>(entry)(nullptr, &id), "cuStreamGetId");
  return id;
}

unsigned long long idOf(CUstream stream) {
  unsigned long long id = 0;
  check(reinterpret_cast<PFN_cuStreamGetId_v12000>(ask("cuStreamGetId", legacy))(stream, &id), "cuStreamGetId");
  return id;
}

// The flavours are different functions, and each behaves as its name says.
bool flagsAreHeeded() {
  bool ok = true;
  for (const char* name : {"cuMemcpy", "cuMemcpyHtoD", "cuMemcpyDtoHAsync", "cuMemsetD32", "cuMemsetD8Async", "cuLaunchKernel",
                           "cuLaunchKernelEx", "cuEventRecord", "cuStreamSynchronize", "cuStreamWaitEvent", "cuLaunchHostFunc",
                           "cuMemAllocAsync", "cuMemFreeAsync", "cuMemcpy3D", "cuStreamGetCtx"}) {
    void* plain = ask(name, CU_GET_PROC_ADDRESS_DEFAULT);
    ok &= EXPECT(plain != nullptr) & EXPECT(plain == ask(name, legacy)) & EXPECT(ask(name, perThread) != nullptr) &
          EXPECT(plain != ask(name, perThread));
  }
  ok &= EXPECT(ask("cuMemAlloc", perThread) == ask("cuMemAlloc", legacy));  // it has one flavour
  ok &= EXPECT(idOfNull(ask("cuStreamGetId", legacy)) == idOf(CU_STREAM_LEGACY));
  ok &= EXPECT(idOfNull(ask("cuStreamGetId", perThread)) == idOf(CU_STREAM_PER_THREAD));
  ok &= EXPECT(idOf(CU_STREAM_LEGACY) != idOf(CU_STREAM_PER_THREAD));
  void* entry = &ok;
  CUdriverProcAddressQueryResult found;
  ok &= EXPECT(getProcAddress("cuMemcpy", &entry, 13000, 4, &found) == CUDA_ERROR_INVALID_VALUE);  // invalid flag
  return ok;
}

// cuGetProcAddress itself has two versions; the older one has no status output.
bool asksForItself() {
  auto first = reinterpret_cast<PFN_cuGetProcAddress_v11030>(ask("cuGetProcAddress", legacy, 11030));
  void* entry = nullptr;
  return EXPECT(first != nullptr) && EXPECT(ask("cuGetProcAddress", legacy) != reinterpret_cast<void*>(first)) &&
         EXPECT(first("cuStreamGetId", &entry, 13000, perThread) == CUDA_SUCCESS) &&
         EXPECT(entry == ask("cuStreamGetId", perThread)) &&
         EXPECT(first("cuNoSuchEntry", &entry, 13000, legacy) == CUDA_ERROR_NOT_FOUND);
}

// The symbols themselves, as linked by a program compiled with per-thread default streams.
bool symbolsAreThere() {
  bool ok = true;
  for (const char* name : {"cuMemcpyHtoD_v2_ptds", "cuMemsetD32_v2_ptds", "cuMemcpyAsync_ptsz", "cuLaunchKernel_ptsz",
                           "cuEventRecord_ptsz", "cuStreamSynchronize_ptsz", "cuStreamQuery_ptsz", "cuMemAllocAsync_ptsz",
                           "cuGetProcAddress", "cuLinkCreate_v2", "cuLinkAddData_v2",
                           "cuLinkAddFile_v2", "cuLinkComplete", "cuLinkDestroy", "cuGraphLaunch_ptsz", "cuMemAlloc",
                           "cuGraphInstantiate", "cuDevicePrimaryCtxRelease", "cuStreamGetCaptureInfo_v2_ptsz"})
    if (!dlsym(library, name)) {
      std::fprintf(stderr, "libcuda.so.1 has no %s\n", name);
      ok = false;
    }
  void* own = dlsym(library, "cuStreamGetId_ptsz");
  return ok && EXPECT(own != nullptr) && EXPECT(idOfNull(own) == idOf(CU_STREAM_PER_THREAD));
}

bool runtimePassesFlagsOn() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuStreamGetId", &entry, 13000, cudaEnablePerThreadDefaultStream, &found));
  bool ok = EXPECT(idOfNull(entry) == idOf(CU_STREAM_PER_THREAD));
  CHECK(cudaGetDriverEntryPointByVersion("cuStreamGetId", &entry, 13000, cudaEnableLegacyStream, &found));
  return ok & EXPECT(idOfNull(entry) == idOf(CU_STREAM_LEGACY));
}

// A fill by the per-thread flavour is ordered behind the thread's own stream, which a host function holds; by the legacy flavour it would
// not wait for a non-blocking stream.
void CUDART_CB hold(void* go) {
  while (!static_cast<std::atomic<bool>*>(go)->load()) usleep(1000);
}

bool workGoesIntoTheOwnStream() {
  std::atomic<bool> go{false};
  DeviceArray<unsigned> words(std::vector<unsigned>(64, 1));
  CHECK(cudaLaunchHostFunc(cudaStreamPerThread, hold, &go));
  auto fill = reinterpret_cast<PFN_cuMemsetD32Async_v3020>(ask("cuMemsetD32Async", perThread));
  auto query = reinterpret_cast<PFN_cuStreamQuery_v2000>(ask("cuStreamQuery", perThread));
  check(fill(reinterpret_cast<CUdeviceptr>(&words[0]), 7, 64, nullptr), "cuMemsetD32Async");
  bool ok = EXPECT(query(nullptr) == CUDA_ERROR_NOT_READY);
  go = true;
  check(reinterpret_cast<PFN_cuStreamSynchronize_v2000>(ask("cuStreamSynchronize", perThread))(nullptr), "wait");
  return ok & same("words", words.download(), std::vector<unsigned>(64, 7));
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!EXPECT(library != nullptr)) return 1;
  getProcAddress = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (!EXPECT(getProcAddress != nullptr)) return 1;
  bool ok = symbolsAreThere() && flagsAreHeeded();
  return verdict("driver-flavours", ok && asksForItself() && runtimePassesFlagsOn() && workGoesIntoTheOwnStream());
}
