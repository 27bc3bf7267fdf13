// A function between text and decoded form: instructions over virtual registers and labels.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "stub/emulator/ptx/lanes/registry.h"
#include "stub/emulator/ptx/run/program.h"
#include "stub/emulator/ptx/text/error.h"

namespace vgpu::emulator {

// Lanes that an instruction reads or writes. Register numbers are dense; a constant is an index into the function's constants; a fixed
// value is a byte offset in the parameter area.
struct Value {
  enum class Kind : uint8_t { none, reg, constant, fixed };
  Kind kind = Kind::none;
  uint8_t bytes = 0;  // of a lane
  int32_t id = -1;

  explicit operator bool() const { return kind != Kind::none; }
  bool operator==(const Value&) const = default;
};

struct IrInst {
  // Effect on control flow: after `next` and `guard` execution goes on; the others end a basic block.
  enum class Flow : uint8_t { next, guard, jump, jumpIf, jumpIndexed, end, exit };

  Handler whole = nullptr, masked = nullptr;
  Flow flow = Flow::next;
  bool guarded = false;    // the preceding instruction is its guard: its outputs may keep their old values
  bool joinAfter = false;  // lanes may diverge here and reconverge at the next instruction
  uint8_t outs = 0, ops = 0;
  std::array<Value, mostOperands> op{};
  std::vector<Value> wideOuts, wideIns;  // for an instruction with WideOperands
  int32_t form = 0;                      // op[7] if it is not a value: an AccessForm
  int32_t raw0 = 0;                      // op[0] and op[1] of an instruction with WideOperands
  int32_t raw1 = 0;                      // op[1] if it is not a value: the negation of a guard or branch
  int label = -1;                        // of jump and jumpIf
  int table = -1;                        // of jumpIndexed: index into Ir::tables
  uint64_t imm = 0;
  const void* aux = nullptr;
  SourceLine line;
};

// Calls `read(value)` and `write(value)` for the values that `inst` reads and writes.
template <class R, class W>
void forOperands(const IrInst& inst, R read, W write) {
  for (int k = inst.outs; k < inst.ops; ++k) read(inst.op[k]);
  for (const Value& value : inst.wideIns) read(value);
  for (int k = 0; k < inst.outs; ++k) write(inst.op[k]);
  for (const Value& value : inst.wideOuts) write(value);
}

struct Ir {
  std::vector<IrInst> code;
  std::vector<uint8_t> registers;  // bytes of each virtual register's lane
  std::vector<FrameConstant> constants;
  std::vector<int> labels;  // label -> index into code
  std::vector<std::vector<int>> tables;
  uint32_t fixedBytes = 0;         // the parameter area of the frame
  std::vector<int> dynamicShared;  // constants to which the offset of dynamic shared memory must be added
  bool isKernel = false;
};

struct BasicBlock {
  int begin = 0, end = 0;  // instructions
  std::vector<int> next;
  int join = -1;  // immediate post-dominator of a block whose lanes may diverge; -1: none
  bool isJoin = false;
};

// The basic blocks of `ir`, in code order, with the joins of every divergent branch.
std::vector<BasicBlock> findBlocks(const Ir&);

// Byte offsets of virtual registers in a register area that begins at 0; values that are not live at the same time may share a place.
// Returns the area's size; `words` is the maximum of live 32-bit words.
uint32_t allocateRegisters(const Ir&, const std::vector<BasicBlock>&, std::vector<int32_t>& offsets, uint32_t& words);

// Produces the function's code. Slots of parameters, results and call sites are still offsets in the parameter area.
void assemble(Ir&, Function&);

// Appends instructions to an Ir.
class Builder {
 public:
  explicit Builder(Ir& ir) : ir(ir) {}

  Value reg(uint32_t bytes);
  Value constant(uint32_t bytes, uint64_t lo, uint64_t hi = 0);
  Value dynamicShared(uint32_t bytes, uint64_t addend);
  Value fixed(uint32_t offset, uint32_t bytes) {
    return {Value::Kind::fixed, static_cast<uint8_t>(bytes), static_cast<int32_t>(offset)};
  }
  // Reserves `words` 4-byte lanes in the parameter area; returns their offset.
  uint32_t reserveFixed(uint32_t words);
  void releaseFixed(uint32_t mark) { fixedTop = mark; }
  uint32_t fixedMark() const { return fixedTop; }

  int newLabel();
  void place(int label) { ir.labels[label] = static_cast<int>(ir.code.size()); }

  // Adds an instruction with one handler, or a row of the registry.
  IrInst& add(Handler handler, std::initializer_list<Value> outs, std::initializer_list<Value> ins);
  IrInst& wide(Handler handler, std::vector<Value> outs, std::vector<Value> ins);
  void row(const Row&, Value out, const Value* in);
  // The row `name`, which must exist.
  void lane(std::string_view name, Value out, std::initializer_list<Value> ins);
  void move(Value to, Value from);
  void jump(int label);
  void jumpIf(Value predicate, bool negated, int label);

  // Until cleared, all instructions are added under this predicate.
  void setGuard(Value predicate, bool negated) { guardPredicate = predicate, guardNegated = negated; }
  void clearGuard() { guardPredicate = {}; }

  SourceLine line;

 private:
  IrInst& push(Handler whole, Handler masked);

  Ir& ir;
  std::map<std::tuple<uint32_t, uint64_t, uint64_t>, int> known;
  std::map<std::pair<uint32_t, uint64_t>, int> knownDynamic;
  Value guardPredicate;
  bool guardNegated = false;
  uint32_t fixedTop = 0;
};

}  // namespace vgpu::emulator
