// A PTX module: parsed text, its kernels and variables, and the image that the device places in memory.
//
// Owned by whoever loaded it (shared_ptr: a running kernel keeps its module). Immutable once placed; any thread may
// read. Text is parsed once at load; a kernel's body is decoded at its first use, once, so unused kernels cost their
// text only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::emulator {

// Why a module was refused. `line` counts from 1 in the PTX text; 0 where no line applies.
struct PtxError : std::runtime_error {
  enum class Kind { invalid, unsupported, unresolved };
  PtxError(Kind kind, int line, std::string message);
  Kind kind;
  int line;
};

enum class VariableSpace { global, constant };

// A part of the image that lies in one piece: a variable, or several.
struct Section {
  uint64_t bytes = 0, align = 1;
  bool managed = false;
};

// Where a section is: its device address, and where this process sees it.
struct SectionPlace {
  uint64_t base = 0;
  std::byte* host = nullptr;
};

// A module variable as the program names it: `bytes` at `offset` of its section.
struct Variable {
  std::string name;
  VariableSpace space;
  uint32_t section;
  uint64_t offset, bytes;
  bool managed = false;
};

struct Parameter {
  uint32_t offset, bytes;  // in the kernel's parameter block
};

struct KernelAttributes {
  uint32_t maxThreadsPerBlock;  // from .maxntid/.reqntid, else 1024
  uint32_t staticSharedBytes;
  uint32_t localBytes;     // a thread's stack frame
  uint32_t constantBytes;  // the module's constant bank
  uint32_t registers;      // an estimate, stable for a given text
  uint32_t ptxVersion;     // 75 for compute_75
};

struct Kernel;  // interpreter.h

class Module {
 public:
  // Parses `text` for a device of compute capability `architecture` (major * 10 + minor). Throws PtxError.
  static std::shared_ptr<Module> parse(std::string_view text, int architecture);
  virtual ~Module() = default;

  virtual std::span<const Variable> variables() const = 0;
  virtual std::vector<std::string> kernelNames() const = 0;

  // The image's sections in the order in which they are to be placed. place() fixes the addresses, a place a section,
  // and writes the initial values.
  virtual std::span<const Section> sections() const = 0;
  virtual void place(std::span<const SectionPlace>) = 0;
  virtual uint64_t addressOf(const Variable&) const = 0;

  // For those that have one piece of memory for all sections: how much it takes, and section after section in it.
  uint64_t imageBytes() const;
  void placeTogether(uint64_t base, std::byte* host);

  // The kernel named `name`, decoded; nullptr where there is none. Throws PtxError where its body cannot be decoded.
  virtual const Kernel* findKernel(std::string_view name) = 0;
};

std::span<const Parameter> parametersOf(const Kernel&);
KernelAttributes attributesOf(const Kernel&);
std::string_view nameOf(const Kernel&);

}  // namespace vgpu::emulator
