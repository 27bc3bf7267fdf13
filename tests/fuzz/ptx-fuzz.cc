// Hostile PTX: every text is either a module whose kernels decode and run to an end or a fault, or a PtxError; nothing else, and in bounded
// time.
#include <cstring>

#include "fuzz.h"
#include "stub/emulator/ptx/module.h"
#include "stub/emulator/ptx/run/interpreter.h"
#include "stub/emulator/ptx/text-linker.h"

using namespace vgpu::emulator;

namespace {

constexpr uint64_t imageBase = 0x200000000000, dataBase = 0x210000000000;

// The module's image, and some memory that every pointer parameter points to.
class TwoRegions : public Memory {
 public:
  explicit TwoRegions(size_t imageBytes) : imageMemory(imageBytes), data(4096) {}
  std::optional<Region> find(uint64_t address) const override {
    for (const auto& [base, bytes] : {std::pair(imageBase, &imageMemory), std::pair(dataBase, &data)})
      if (address - base < bytes->size())
        return Region{base, bytes->size(), const_cast<std::byte*>(bytes->data()), true};
    return std::nullopt;
  }
  std::string describe(uint64_t) const override { return "nowhere"; }
  std::byte* image() { return imageMemory.data(); }

 private:
  std::vector<std::byte> imageMemory, data;
};

void runKernel(const Kernel& kernel, Memory& memory) {
  Launch launch{};
  std::vector<std::byte> parameters;
  for (const Parameter& parameter : parametersOf(kernel)) {
    parameters.resize(std::max<size_t>(parameters.size(), parameter.offset + parameter.bytes));
    std::memcpy(parameters.data() + parameter.offset, &dataBase, std::min<size_t>(parameter.bytes, 8));
  }
  launch.kernel = &kernel;
  launch.block = {40, 1, 1};
  launch.memory = &memory;
  launch.parameters = parameters;
  launch.maxInstructions = 1;
  launch.stackBytes = 4096;
  std::string output;
  run(launch, output);
}

bool runAll(std::string_view text) try {
  const auto module = Module::parse(text, 90);
  if (module->imageBytes() > (1 << 24)) return false;  // too large to allocate
  TwoRegions memory(module->imageBytes());
  module->placeTogether(imageBase, memory.image());
  bool all = true;
  for (const std::string& name : module->kernelNames()) {
    try {
      if (const Kernel* kernel = module->findKernel(name)) runKernel(*kernel, memory);
    } catch (const PtxError&) {
      all = false;
    }
  }
  return all;
} catch (const PtxError&) {
  return false;
}

// Links the text with a module that has symbols of all kinds.
void link(const std::string& text) try {
  TextLinker linker;
  linker.add(
      "other",
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .global .u32 x;\n.global .u64 table;\n.weak .func "
      "work() { ret; }\n.func k() { ret; }\n");
  linker.add("input", text);
  linker.undefined();
  Module::parse(linker.linked(), 90);
} catch (const PtxError&) {
}

// A kernel whose body is the input.
std::string wrapped(const std::string& body) {
  return ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
         ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<4>;\n" +
         body + "\n}\n";
}

}  // namespace

bool vgpu::fuzz::accepts(std::span<const uint8_t> input) {
  const std::string text(input.begin(), input.end());
  link(text);
  const bool whole = runAll(text), body = runAll(wrapped(text));
  return whole || body;
}
