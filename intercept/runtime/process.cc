#include "intercept/runtime/process.h"

#include <pthread.h>

#include <cstdlib>
#include <mutex>

#include "intercept/runtime/answer.h"
#include "intercept/runtime/driver-entries.h"
#include "intercept/runtime/last-error.h"
#include "intercept/runtime/message.h"

namespace vgpu::runtime {

thread_local constinit Thread thread;
constinit std::atomic<Stage> stage = Stage::fresh;
constinit std::atomic<unsigned> epoch = 0;
constinit std::atomic<bool> exiting = false;

namespace {

constinit std::mutex initialising;
constinit bool bound = false;

void inChild() {
  if (stage.load() != Stage::fresh && stage.load() != Stage::ended) stage.store(Stage::forked);
}

/// Priority 101: after every other destructor of this library.
__attribute__((destructor(101))) void end() { stage.store(Stage::ended); }

cudaError_t bind() {
  if (bound) return cudaSuccess;
  if (const char* problem = bindDriver()) {
    static constinit bool said = false;
    if (!said) say({"there is no CUDA driver: ", problem});
    said = true;
    return cudaErrorInsufficientDriver;
  }
  pthread_atfork(nullptr, nullptr, inChild);
  // atexit handlers run last in, first out: this one before those that nvcc's constructors registered before main.
  atexit([] { exiting.store(true); });
  bound = true;
  return cudaSuccess;
}

}  // namespace

cudaError_t startDriver() {
  if (stage.load() == Stage::forked) return cudaErrorInitializationError;
  if (stage.load() == Stage::ended) return cudaErrorCudartUnloading;
  std::lock_guard lock(initialising);
  if (stage.load() == Stage::working) return cudaSuccess;
  if (cudaError_t error = bind(); error != cudaSuccess) return error;
  stage.store(Stage::starting);
  cudaError_t error = answer(cuInit(0));
  stage.store(error == cudaSuccess ? Stage::working : Stage::fresh, std::memory_order_release);
  return error;
}

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) thread.last = error;  // "not ready" is a result, not a failure
  return error;
}

cudaError_t takeLastError() {
  cudaError_t error = thread.last;
  thread.last = cudaSuccess;
  return error;
}

cudaError_t peekLastError() { return thread.last; }

}  // namespace vgpu::runtime
