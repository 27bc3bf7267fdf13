#include "intercept/session/failure.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "intercept/session/cancellation.h"
#include "intercept/session/session.h"

namespace vgpu::client {

namespace {

// Each text is printed once: a program may repeat the call.
void sayOnce(const char* text) {
  // Never destroyed: static destructors may still call.
  static auto& mutex = *new std::mutex;
  static auto& said = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (said.size() < 100 && said.insert(text).second) fprintf(stderr, "vgpu: %s\n", text);
}

}  // namespace

CUresult reportFailure(const char* text) noexcept {
  CancellationOff whileSpeaking;
  try {
    sayOnce(text);
  } catch (const std::bad_alloc&) {
    // Then nothing is printed; the error code is all that is reported.
  }
  return Session::find() == nullptr ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_UNKNOWN;
}

}  // namespace vgpu::client
