// Driver functions that a session does not have, or cannot have: they are exported so that a program linked against them starts, and the
// first call of each prints a message with its name. The definitions are weak: one elsewhere in this library overrides them.
#include <atomic>
#include <cstdio>

namespace {

constexpr int notSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED; cuda.h would declare the functions with their parameters

int refuse(const char* name, const char* why, std::atomic<bool>& said) {
  if (said.exchange(true)) return notSupported;
  if (*why == 0) {
    fprintf(stderr, "vgpu: %s is not supported yet; it returns CUDA_ERROR_NOT_SUPPORTED\n", name);
  } else {
    fprintf(stderr, "vgpu: %s is not available on a virtual GPU (%s); it returns CUDA_ERROR_NOT_SUPPORTED\n", name, why);
  }
  return notSupported;
}

}  // namespace

#define UNSUPPORTED(name, why)                                                         \
  extern "C" __attribute__((weak, visibility("default"))) int name() {                 \
    static std::atomic<bool> said{false};                                              \
    return refuse(#name, why, said);                                                    \
  }
#include "cuda-unsupported.inc"

#define GRAPHICS(symbol, since) UNSUPPORTED(symbol, "graphics interoperability")
#include "intercept/driver/graphics.inc"
