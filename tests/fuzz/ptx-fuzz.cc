// Hostile PTX: every text is either a module whose kernels decode, or a PtxError; nothing else, and in bounded time.
#include <cstdint>
#include <vector>

#include "ptx/interpreter.h"

using namespace vgpu::emulator;

namespace {

void decodeAll(std::string_view text) {
  const auto module = Module::parse(text, 90);
  if (module->imageBytes() > (1 << 24)) return;  // what a caller would find no memory for
  std::vector<std::byte> image(module->imageBytes());
  module->place(0x200000000000, image.data());
  for (const std::string& name : module->kernelNames()) {
    try {
      module->findKernel(name);
    } catch (const PtxError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(data, data + size);
  try {
    decodeAll(text);
  } catch (const PtxError&) {
  }
  try {
    decodeAll(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>; .reg "
        ".b16 %h<4>; .reg .b32 %r<4>; "
        ".reg .b64 %d<4>;\n" +
        text + "\n}\n");
  } catch (const PtxError&) {
  }
  return 0;
}
