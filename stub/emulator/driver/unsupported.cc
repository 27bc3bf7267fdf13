// Entries of the driver API that the emulator does not have: weak definitions, which one elsewhere in this library overrides.
namespace {

constexpr int notSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED; cuda.h would declare the functions with their parameters

}  // namespace

#define UNSUPPORTED(name, why) \
  extern "C" __attribute__((weak, visibility("default"))) int name() { return notSupported; }
#include "cuda-unsupported.inc"
