#include "intercept/session/failure.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "intercept/session/cancellation.h"
#include "intercept/session/refusal.h"
#include "intercept/session/session.h"

namespace vgpu::client {

namespace {

// Prints each text once: a program may repeat the call.
void sayOnce(const std::string& text) {
  // Never destroyed: static destructors may still call this.
  static auto& mutex = *new std::mutex;
  static auto& said = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (said.size() < 100 && said.insert(text).second) fprintf(stderr, "vgpu: %s\n", text.c_str());
}

void say(const char* text, const char* rest = "") noexcept {
  CancellationOff whileSpeaking;
  try {
    sayOnce(std::string(text) + rest);
  } catch (const std::bad_alloc&) {
    // Nothing is printed then; the error code is all that is reported.
  }
}

}  // namespace

CUresult reportFailure(const char* text) noexcept {
  say(text);
  return Session::find() == nullptr ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_UNKNOWN;
}

CUresult reportFailure(const std::exception& failure) noexcept {
  const CUresult result = reportFailure(failure.what());
  return dynamic_cast<const InvalidDevices*>(&failure) != nullptr ? CUDA_ERROR_INVALID_DEVICE : result;
}

CUresult refuseInSession(const char* what) noexcept {
  say(what, " is not available on a virtual GPU; the call returns CUDA_ERROR_NOT_SUPPORTED");
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace vgpu::client
