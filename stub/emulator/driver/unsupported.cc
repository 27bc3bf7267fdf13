// Entries of the driver API that the emulator lacks: weak definitions, which a definition elsewhere in this library overrides.
namespace {

constexpr int notSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED; cuda.h is not included because it declares the functions with parameters

}  // namespace

#define UNSUPPORTED(name, why) \
  extern "C" __attribute__((weak, visibility("default"))) int name() { return notSupported; }
#include "cuda-unsupported.inc"
