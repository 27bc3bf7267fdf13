// Driver functions that a session does not have yet: they are exported, so that a program linked against them starts, and the
// first call of each prints a message with its name. These are weak definitions; one elsewhere in this library overrides them.
#include <atomic>
#include <cstdio>

namespace {

constexpr int notSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED; cuda.h would declare the functions with their parameters

int refuse(const char* name, std::atomic<bool>& said) {
  if (!said.exchange(true)) fprintf(stderr, "vgpu: %s is not supported yet; it returns CUDA_ERROR_NOT_SUPPORTED\n", name);
  return notSupported;
}

}  // namespace

#define UNSUPPORTED(name)                                                              \
  extern "C" __attribute__((weak, visibility("default"))) int name() {                 \
    static std::atomic<bool> said{false};                                              \
    return refuse(#name, said);                                                        \
  }
#include "cuda-unsupported.inc"
