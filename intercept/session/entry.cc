#include "intercept/session/entry.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

namespace vgpu {

Session* initializedSession() { return Session::find(); }

CUresult reportFailure(const kj::Exception& failure) {
  static std::mutex mutex;
  static std::set<std::string> said;  // each text once: a program may call again and again
  std::string text = failure.getDescription().cStr();
  std::lock_guard lock(mutex);
  if (said.size() < 100 && said.insert(text).second) fprintf(stderr, "vgpu: %s\n", text.c_str());
  return Session::find() == nullptr ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_UNKNOWN;
}

}  // namespace vgpu
