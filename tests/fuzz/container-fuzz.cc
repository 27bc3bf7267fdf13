// The container reader on arbitrary bytes: whatever they are, it answers PTX or refuses.
#include <cstddef>
#include <cstdint>
#include <span>

#include "container.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const uint8_t> bytes(data, size);
  try {
    vgpu::emulator::api::findPtx(std::as_bytes(bytes), 90);
  } catch (const vgpu::emulator::api::Refusal&) {
    // What most inputs deserve.
  }
  return 0;
}
