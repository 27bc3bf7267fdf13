// A kernel as the interpreter runs it. Immutable once made; any thread may read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "stub/emulator/ptx/lanes/instruction.h"
#include "stub/emulator/ptx/run/kernel.h"

namespace vgpu::emulator {

// Lanes in a frame: `offset` bytes from its beginning.
struct Slot {
  int32_t offset;
  uint32_t bytes;
};

struct SourceLine {
  int ptx = 0;
  int file = 0, line = 0;  // .loc, 0 if there is none
};

// A constant operand: lanes that hold one value, placed at the frame's beginning when the function is entered.
struct FrameConstant {
  int32_t offset;
  uint32_t bytes;  // of one lane
  uint64_t lo, hi;
};

struct CallSite;
constexpr std::string_view graphLaunchCall = "cudaGraphLaunch";  // the function of device code
// Operands of an instruction that has more than fit into an Inst.
struct WideOperands {
  std::vector<int32_t> outs, ins;
};
struct IndexedTargets {
  std::vector<const Inst*> targets;
};

struct Function {
  std::string name;
  std::vector<Inst> code;
  std::vector<SourceLine> lines;  // of each instruction
  std::vector<FrameConstant> constants;
  std::vector<std::byte> constantLanes;  // the same, lanes spread: the frame's first bytes
  uint32_t frameBytes = 0;               // constants included, a multiple of 64
  uint32_t localBytes = 0;
  std::vector<Slot> parameters, results;  // where a caller's arguments go and the results are found
  std::vector<std::unique_ptr<CallSite>> calls;
  std::vector<std::unique_ptr<IndexedTargets>> tables;
  std::vector<std::unique_ptr<WideOperands>> wideOperands;
  uint32_t registers = 0;  // live at once, in 32-bit words: what a compiler would need
  void spreadConstants();
  std::string refusal;  // not empty: the body could not be decoded, and a call to it is a fault that says so
};

struct CallSite {
  const Function* callee = nullptr;  // nullptr: through the address in the lanes at `target`
  std::string calleeName;
  int32_t target = 0;
  std::vector<Slot> arguments, results;
};

struct Kernel {
  std::string name;
  KernelAttributes attributes{};
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  const Function* entry = nullptr;
  uint64_t dynamicSharedOffset = 0;  // where `extern .shared` variables begin
  uint64_t sharedBytes(uint32_t dynamicBytes) const {
    return dynamicBytes ? dynamicSharedOffset + dynamicBytes : attributes.staticSharedBytes;
  }
  std::vector<std::unique_ptr<Function>> functions;
  std::unordered_map<uint64_t, const Function*> byAddress;  // for indirect calls
  std::pair<uint64_t, uint64_t> constantRange;              // [begin, end) of .const variables, for isspacep
  std::map<int, std::string> files;
};

}  // namespace vgpu::emulator
