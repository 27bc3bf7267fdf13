// The readers of images (vgpu/image) on arbitrary bytes, as the worker and the emulated device use them: for any input, the worker finds
// its facts or a problem, and the emulated device finds PTX or refuses.
#include "fuzz.h"
#include "stub/emulator/driver/cuda-api.h"
#include "stub/emulator/module/container.h"
#include "stub/worker/image-facts.h"

bool vgpu::fuzz::accepts(std::span<const uint8_t> input) {
  stub::findFacts(std::as_bytes(input));
  try {
    emulator::api::findPtx(std::as_bytes(input), 90);
    return true;
  } catch (const emulator::api::Refusal&) {
    return false;
  }
}
