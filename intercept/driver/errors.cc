// Names and texts of CUDA's errors, shared with the runtime library.
#include <cuda.h>
#include <driver_types.h>

#include "intercept/driver/shared.h"

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

vgpu::client::ErrorTexts vgpu::client::textsOf(CUresult error) {
  const char* name = nameOfError(error);
  return {name, name != nullptr ? textOfError(error) : nullptr};
}
