// The container reader on arbitrary bytes: whatever they are, it answers PTX or refuses.
#include "container.h"
#include "fuzz.h"

bool vgpu::fuzz::accepts(std::span<const uint8_t> input) {
  try {
    emulator::api::findPtx(std::as_bytes(input), 90);
    return true;
  } catch (const emulator::api::Refusal&) {
    return false;
  }
}
