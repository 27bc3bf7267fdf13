// Threads that are cancelled during a call: the process goes on, and so does the work that they began.
#include <pthread.h>

#include "await-flag.h"
#include "program.h"

__global__ void store(int* into, int value) { *into = value; }

namespace {

struct Held {
  cudaStream_t stream;
  cudaEvent_t event;
  int* value;
  char* many;
  std::atomic<bool> released{false}, entered{false};
};

using Call = void (*)(Held& held);

struct Caller {
  Held& held;
  Call call;
  int type;
};

void* run(void* argument) {
  Caller& caller = *static_cast<Caller*>(argument);
  int before;
  caller.held.entered = true;
  pthread_setcanceltype(caller.type, &before);
  caller.call(caller.held);
  for (;;) pthread_testcancel();
}

// Cancels a thread in `call`, which waits for a stream that is released only afterwards.
bool survives(const char* what, Held& held, Call call, int type) {
  held.released = held.entered = false;
  CHECK(cudaLaunchHostFunc(held.stream, awaitFlag, &held.released));
  store<<<1, 1, 0, held.stream>>>(held.value, 5);
  CHECK(cudaEventRecord(held.event, held.stream));
  Caller caller{held, call, type};
  pthread_t thread;
  void* result = nullptr;
  if (pthread_create(&thread, nullptr, run, &caller) != 0) std::exit(3);
  while (!held.entered) usleep(100);
  usleep(100000);  // until it waits; if it does not wait yet, the test checks less
  pthread_cancel(thread);
  held.released = true;
  pthread_join(thread, &result);
  if (result != PTHREAD_CANCELED) std::fprintf(stderr, "the thread in %s was not cancelled\n", what);
  // All locks that it held are free again, and calls of all kinds work.
  int* memory;
  int seen = 0;
  CHECK(cudaStreamSynchronize(held.stream));
  CHECK(cudaMalloc(&memory, 16 << 20));
  CHECK(cudaFree(memory));
  CHECK(cudaMemcpy(&seen, held.value, sizeof seen, cudaMemcpyDeviceToHost));
  return (result == PTHREAD_CANCELED) & EXPECT(seen == 5);
}

}  // namespace

int main() {
  loadKernel(store);
  Held held;
  CHECK(cudaStreamCreateWithFlags(&held.stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&held.event, cudaEventDisableTiming));
  CHECK(cudaMalloc(&held.value, 8 << 20));
  static std::vector<char> bytes(8 << 20), many(80 << 20);  // `many` is larger than the staging memory
  CHECK(cudaMalloc(&held.many, many.size()));
  const std::pair<const char*, Call> calls[] = {
      {"cudaEventSynchronize", [](Held& held) { cudaEventSynchronize(held.event); }},
      {"cudaStreamSynchronize", [](Held& held) { cudaStreamSynchronize(held.stream); }},
      {"cudaDeviceSynchronize", [](Held&) { cudaDeviceSynchronize(); }},
      {"cudaFree", [](Held&) {
         int* memory;
         if (cudaMalloc(&memory, 4) == cudaSuccess) cudaFree(memory);
       }},
      {"a copy of few bytes", [](Held& held) {
         cudaMemcpyAsync(bytes.data(), held.value, 4, cudaMemcpyDeviceToHost, held.stream);
       }},
      {"a copy of many bytes", [](Held& held) {
         cudaMemcpyAsync(bytes.data(), held.value, bytes.size(), cudaMemcpyDeviceToHost, held.stream);
       }},
      {"a copy of many bytes to the device", [](Held& held) {
         cudaMemcpyAsync(held.many, many.data(), many.size(), cudaMemcpyHostToDevice, held.stream);
       }},
  };
  bool ok = true;
  for (auto& [what, call] : calls) ok &= survives(what, held, call, PTHREAD_CANCEL_DEFERRED);
  std::fill(many.begin(), many.end(), 7);
  CHECK(cudaMemcpy(held.many, many.data(), many.size(), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(bytes.data(), held.many + many.size() - bytes.size(), bytes.size(), cudaMemcpyDeviceToHost));
  ok &= EXPECT(bytes.front() == 7 && bytes.back() == 7);
  return verdict("cancelled", ok);
}
