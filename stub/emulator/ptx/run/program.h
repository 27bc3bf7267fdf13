// A kernel in the form that the interpreter runs. Immutable once made; any thread may read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "stub/emulator/ptx/lanes/instruction.h"
#include "stub/emulator/ptx/run/kernel.h"

namespace vgpu::emulator {

// Lanes in a frame, at byte `offset`.
struct Slot {
  int32_t offset;
  uint32_t bytes;
};

struct SourceLine {
  int ptx = 0;
  int file = 0, line = 0;  // .loc, 0 if there is none
};

// A constant operand: lanes with one value, written to the beginning of the frame when the function is entered.
struct FrameConstant {
  int32_t offset;
  uint32_t bytes;  // of one lane
  uint64_t lo, hi;
};

struct CallSite;
constexpr std::string_view graphLaunchCall = "cudaGraphLaunch";  // the function's name in device code
// Operands of an instruction with more operands than fit into an Inst.
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
  std::vector<std::byte> constantLanes;  // the same, spread to lanes: the frame's first bytes
  uint32_t frameBytes = 0;               // including constants, a multiple of 64
  uint32_t localBytes = 0;
  std::vector<Slot> parameters, results;  // where a caller puts arguments and reads results
  std::vector<std::unique_ptr<CallSite>> calls;
  std::vector<std::unique_ptr<IndexedTargets>> tables;
  std::vector<std::unique_ptr<WideOperands>> wideOperands;
  uint32_t registers = 0;  // the most live at once, in 32-bit words: the estimate of registers
  void spreadConstants();
  std::string refusal;  // if not empty, the body could not be decoded, and a call faults with this text
};

struct CallSite {
  const Function* callee = nullptr;  // nullptr: an indirect call, by the address in the lanes at `target`
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
  uint64_t dynamicSharedOffset = 0;  // start of `extern .shared` variables
  uint64_t sharedBytes(uint32_t dynamicBytes) const {
    return dynamicBytes ? dynamicSharedOffset + dynamicBytes : attributes.staticSharedBytes;
  }
  std::vector<std::unique_ptr<Function>> functions;
  std::unordered_map<uint64_t, const Function*> byAddress;  // for indirect calls
  std::pair<uint64_t, uint64_t> constantRange;              // [begin, end) of .const variables, for isspacep
  std::map<int, std::string> files;
};

}  // namespace vgpu::emulator
