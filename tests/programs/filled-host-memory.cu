// A fill of pinned or registered memory by a call without a stream is complete when the call returns, whatever work the device has before
// it (fill-not-awaited.cu: a fill in a stream is not waited for).
#include <unistd.h>

#include "driver-entry.h"

extern "C" {
cudaError_t cudaMemset_ptds(void* memory, int value, size_t bytes);
cudaError_t cudaMemset2D_ptds(void* memory, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset3D_ptds(cudaPitchedPtr memory, int value, cudaExtent extent);
}

namespace {

constexpr size_t pitch = 64, rows = 8, bytes = pitch * rows;

struct Filled {
  const char* what;
  char* memory;
  cudaStream_t behind;  // the stream that orders the fill
};

template <typename Fill>
bool isOver(const Filled& filled, const char* how, Fill fill) {
  volatile char* memory = filled.memory;
  memory[0] = memory[pitch + 3] = 1;
  CHECK(cudaLaunchHostFunc(filled.behind, [](void*) { usleep(20000); }, nullptr));
  fill();
  const bool ok = memory[0] == 7 && memory[pitch + 3] == 7;
  if (!ok) std::fprintf(stderr, "%s memory, %s: not filled when the call returns\n", filled.what, how);
  CHECK(cudaDeviceSynchronize());
  return ok;
}
#define IS_OVER(...) isOver(filled, #__VA_ARGS__, [&] { __VA_ARGS__; })

bool byCallsWithoutStream(const char* what, char* memory) {
  const Filled filled{what, memory, nullptr};
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  const cudaPitchedPtr box = make_cudaPitchedPtr(memory, pitch, pitch, 4), tight = make_cudaPitchedPtr(memory, pitch, pitch, 2);
  return IS_OVER(CHECK(cudaMemset(memory, 7, bytes))) & IS_OVER(CHECK(cudaMemset2D(memory, pitch, 7, 8, rows))) &
         IS_OVER(CHECK(cudaMemset3D(box, 7, make_cudaExtent(8, 3, 2)))) &
         IS_OVER(CHECK(cudaMemset3D(tight, 7, make_cudaExtent(8, 2, 2)))) & IS_OVER(CALL(cuMemsetD8, address, 7, bytes)) &
         IS_OVER(CALL(cuMemsetD16, address, 0x0707, bytes / 2)) & IS_OVER(CALL(cuMemsetD32, address, 0x07070707, bytes / 4)) &
         IS_OVER(CALL(cuMemsetD2D8, address, pitch, 7, 8, rows)) & IS_OVER(CALL(cuMemsetD2D16, address, pitch, 0x0707, 8, rows)) &
         IS_OVER(CALL(cuMemsetD2D32, address, pitch, 0x07070707, 8, rows));
}

bool ofAThreadsOwnStream(const char* what, char* memory) {
  const Filled filled{what, memory, cudaStreamPerThread};
  const cudaPitchedPtr box = make_cudaPitchedPtr(memory, pitch, pitch, 4);
  return IS_OVER(CHECK(cudaMemset_ptds(memory, 7, bytes))) & IS_OVER(CHECK(cudaMemset2D_ptds(memory, pitch, 7, 8, rows))) &
         IS_OVER(CHECK(cudaMemset3D_ptds(box, 7, make_cudaExtent(8, 3, 2))));
}

}  // namespace

int main() {
  char *pinned = nullptr, *mapped = nullptr;
  CHECK(cudaMallocHost(&pinned, bytes));
  CHECK(cudaHostAlloc(&mapped, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  void* registered = std::aligned_alloc(4096, 4096);
  CHECK(cudaHostRegister(registered, 4096, cudaHostRegisterMapped));
  auto all = [&] {
    bool ok = true;
    for (auto [what, memory] : {std::pair{"pinned", pinned}, {"mapped", mapped}, {"registered", static_cast<char*>(registered)}})
      ok &= byCallsWithoutStream(what, memory) & ofAThreadsOwnStream(what, memory);
    return ok;
  };
  bool ok = all();
  pausePoint();
  ok &= all();
  CHECK(cudaHostUnregister(registered));
  std::free(registered);
  return verdict("filled-host-memory", ok);
}
