// A PTX module: parsed text, its kernels and variables, and the image that the device places in memory.
//
// Owned by whoever loaded it (shared_ptr: a running kernel keeps its module). Immutable once placed; any thread may
// read. Text is parsed once at load; a kernel's body is decoded at its first use, once, so unused kernels cost their
// text only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

// A module variable as the program names it. `offset` is from the image's base; `bytes` its size.
struct Variable {
  std::string name;
  VariableSpace space;
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

  // The image holds every variable with its initial value, and a slot of 8 bytes for each function whose address is
  // taken. place() fixes the addresses: `base` is the device address of the image, `host` where this process sees it.
  virtual uint64_t imageBytes() const = 0;
  virtual void place(uint64_t base, std::byte* host) = 0;
  // Where the managed variables begin, which are the image's last: a multiple of 4096; nothing where there are none.
  virtual std::optional<uint64_t> managedOffset() const = 0;
  virtual uint64_t base() const = 0;

  // The kernel named `name`, decoded; nullptr where there is none. Throws PtxError where its body cannot be decoded.
  virtual const Kernel* findKernel(std::string_view name) = 0;
};

std::span<const Parameter> parametersOf(const Kernel&);
KernelAttributes attributesOf(const Kernel&);
std::string_view nameOf(const Kernel&);

}  // namespace vgpu::emulator
