// Names of CUDA's errors, from cuda.h itself at build time; their texts, shared with the runtime library.
#include <cuda.h>
#include <driver_types.h>

#include "intercept/driver/shared.h"

const char* vgpu::client::nameOfError(CUresult error) {
  switch (error) {
#define ERROR(name) \
  case name: return #name;
#include "cuda-errors.inc"
#undef ERROR
    default: return nullptr;
  }
}

namespace {

const char* textOfError(CUresult error) {
  struct Text {
    int code;
    const char* text;
  };
#define ROW(code, text) {code, text}
  static constexpr Text texts[] = {
#include "vgpu/api/error-texts.inc"
  };
#undef ROW
  for (auto& [code, text] : texts)
    if (code == static_cast<int>(error)) return text;
  return nullptr;
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuGetErrorString(CUresult error, const char** pStr) {
  return vgpu::client::giveText(pStr, vgpu::client::nameOfError(error) != nullptr ? textOfError(error) : nullptr);
}

}  // extern "C"
