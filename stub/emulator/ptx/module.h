// A PTX module: parsed text, its kernels and variables, and the image that the device places in memory.
//
// Owned by its users through shared_ptr: a running kernel keeps its module. Immutable once placed; any thread may read. The text is parsed
// once at load; a kernel's body is decoded once, at its first use, so an unused kernel costs only its text.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stub/emulator/ptx/run/kernel.h"
#include "stub/emulator/ptx/text/error.h"
#include "stub/emulator/ptx/text/sections.h"

namespace vgpu::emulator {

class Module {
 public:
  // Parses `text` for a device of compute capability `architecture` (major * 10 + minor). Throws PtxError.
  static std::shared_ptr<Module> parse(std::string_view text, int architecture);
  virtual ~Module() = default;

  virtual std::span<const Variable> variables() const = 0;
  virtual std::vector<std::string> kernelNames() const = 0;

  // The image's sections in the order of their placement. place() sets the addresses, one for each section, and writes the initial values.
  virtual std::span<const Section> sections() const = 0;
  virtual void place(std::span<const SectionPlace>) = 0;
  virtual uint64_t addressOf(const Variable&) const = 0;

  // For a single piece of memory for all sections: its size, and placement of the sections one after another in it.
  uint64_t imageBytes() const;
  void placeTogether(uint64_t base, std::byte* host);

  // Whether its kernels allocate from the device's heap.
  virtual bool usesHeap() const = 0;

  // The kernel named `name`, decoded; nullptr if there is none. Throws PtxError if its body cannot be decoded.
  virtual const Kernel* findKernel(std::string_view name) = 0;
  // The name of the kernel with this address in the module's code and variables; empty if there is none.
  virtual std::string_view kernelNameAt(uint64_t address) const = 0;
};

}  // namespace vgpu::emulator
