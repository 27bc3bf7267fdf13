// A fill of host memory in a stream does not block the caller: the memory is unchanged until the stream reaches the fill.
#include "await-flag.h"
#include "program.h"

namespace {

constexpr size_t pitch = 64, rows = 8, bytes = pitch * rows;

// The device is held until the program continues, so a call that waited for it would not return.
bool inAStreamIsNotWaitedFor(char* memory) {
  std::atomic<bool> mayGoOn{false};
  memory[0] = 1;
  CHECK(cudaLaunchHostFunc(nullptr, awaitFlag, &mayGoOn));
  CHECK(cudaMemsetAsync(memory, 7, bytes, nullptr));
  CHECK(cudaMemset2DAsync(memory, pitch, 7, 8, rows, nullptr));
  bool ok = EXPECT(memory[0] == 1);
  mayGoOn = true;
  CHECK(cudaDeviceSynchronize());
  return ok & EXPECT(memory[0] == 7);
}

}  // namespace

int main() {
  char *pinned = nullptr, *mapped = nullptr;
  CHECK(cudaMallocHost(&pinned, bytes));
  CHECK(cudaHostAlloc(&mapped, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  auto* registered = static_cast<char*>(std::aligned_alloc(4096, 4096));
  CHECK(cudaHostRegister(registered, 4096, cudaHostRegisterMapped));
  auto all = [&] { return inAStreamIsNotWaitedFor(pinned) & inAStreamIsNotWaitedFor(mapped) & inAStreamIsNotWaitedFor(registered); };
  bool ok = all();
  pausePoint();
  ok &= all();
  CHECK(cudaHostUnregister(registered));
  std::free(registered);
  return verdict("fill-not-awaited", ok);
}
