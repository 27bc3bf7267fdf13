#include "intercept/session/entry.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

namespace vgpu {

Session* initializedSession() { return Session::find(); }

CUresult reportFailure(const kj::Exception& failure) {
  // Each text once: a program may call again and again. Never destroyed: static destructors may still call.
  static auto& mutex = *new std::mutex;
  static auto& said = *new std::set<std::string>;
  std::string text = failure.getDescription().cStr();
  std::lock_guard lock(mutex);
  if (said.size() < 100 && said.insert(text).second) fprintf(stderr, "vgpu: %s\n", text.c_str());
  return Session::find() == nullptr ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_UNKNOWN;
}

}  // namespace vgpu
