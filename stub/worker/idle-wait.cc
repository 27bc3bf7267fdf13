// Waiting for the GPUs. Before a save, the wait may last as long as the program's kernels, so the caller is told which kernel runs and may
// give up; before memory is moved, the wait is limited.
#include <cxxabi.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "stub/worker/execution.h"
#include "vgpu/wire/futex.h"

namespace vgpu::stub {

namespace {

constexpr auto reportInterval = std::chrono::milliseconds(100);

// The demangled name; a name that is not mangled stays unchanged.
std::string readable(const std::string& name) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? std::string(text.get()) : name;
}

}  // namespace

bool SessionState::pollIdle(const std::function<bool(unsigned device)>& goesOn) {
  for (unsigned device : usedDevices()) {
    Backoff backoff;
    while (!isEnded(device) && select(device).gpu.query() == CUDA_ERROR_NOT_READY) {
      if (backoff.spin()) continue;
      std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
      if (!goesOn(device)) return false;
    }
  }
  return true;
}

CUresult SessionState::awaitIdle(const Waiting& waiting) {
  auto reported = std::chrono::steady_clock::now();
  pollIdle([&](unsigned device) {
    auto now = std::chrono::steady_clock::now();
    if (!waiting || now - reported < reportInterval) return true;
    reported = now;
    waiting(busyKernel(device));
    return true;
  });
  return synchronize();
}

bool SessionState::isIdleWithin(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  return pollIdle([&](unsigned) { return std::chrono::steady_clock::now() < until; });
}

std::string SessionState::busyKernel(unsigned device) {
  Execution& on = select(device);
  auto function = on.functions.find(on.gpu.busyFunction());
  return function == on.functions.end() ? "" : readable(function->second.name);
}

}  // namespace vgpu::stub
