// From instructions over virtual registers to the array that the interpreter runs.
#include <cstring>

#include "stub/emulator/ptx/decode/ir.h"
#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {
namespace {

using Flow = IrInst::Flow;

class Assembler {
 public:
  Assembler(Ir& ir, Function& function) : ir_(ir), function_(function) {}

  void run() {
    if (ir_.code.empty() || ir_.code.back().flow < Flow::jump || ir_.code.back().flow == Flow::jumpIf) closeOpenEnd();
    checkLabels();
    blocks_ = findBlocks(ir_);
    const uint32_t registerBytes = allocateRegisters(ir_, blocks_, offsets_, function_.registers);
    layOutFrame(registerBytes);
    place();
    emit();
  }

 private:
  // Text after the last ret, or a body without one.
  void closeOpenEnd() {
    IrInst& inst = ir_.code.emplace_back();
    inst.whole = inst.masked = offTheEnd;
    inst.flow = Flow::end;
    if (ir_.code.size() > 1) inst.line = ir_.code[ir_.code.size() - 2].line;
  }

  void checkLabels() {
    for (int& at : ir_.labels)
      if (at >= static_cast<int>(ir_.code.size())) {
        closeOpenEnd();
        break;
      }
  }

  void layOutFrame(uint32_t registerBytes) {
    if (ir_.constants.size() > (1u << 20))
      throw PtxError(PtxError::Kind::unsupported, 0, "'" + function_.name + "' has more than a million constants");
    uint32_t at = 0;
    for (FrameConstant& constant : ir_.constants) {
      constant.offset = static_cast<int32_t>(at);
      at += constant.bytes * kLanes;
    }
    function_.constants = ir_.constants;
    fixedBase_ = static_cast<int32_t>(at);
    at += ir_.fixedBytes;
    registerBase_ = static_cast<int32_t>(at);
    if (uint64_t{at} + registerBytes > (1u << 30))
      throw PtxError(PtxError::Kind::unsupported, 0,
                     "'" + function_.name + "' needs more than 1 GiB for the registers of a warp");
    function_.frameBytes = at + registerBytes;
    for (Slot& slot : function_.parameters) slot.offset += fixedBase_;
    for (Slot& slot : function_.results) slot.offset += fixedBase_;
    for (auto& site : function_.calls) {
      for (Slot& slot : site->arguments) slot.offset += fixedBase_;
      for (Slot& slot : site->results) slot.offset += fixedBase_;
    }
  }

  int32_t offsetOf(const Value& value) const {
    switch (value.kind) {
      case Value::Kind::reg:
        return registerBase_ + offsets_[value.id];
      case Value::Kind::constant:
        return ir_.constants[value.id].offset;
      case Value::Kind::fixed:
        return fixedBase_ + value.id;
      default:
        return 0;
    }
  }

  // Where each block's first instruction will stand: a join has one more.
  void place() {
    size_t at = 0;
    for (const BasicBlock& block : blocks_) {
      starts_.push_back(at);
      at += static_cast<size_t>(block.end - block.begin) + block.isJoin;
    }
    function_.code.resize(at);
    function_.lines.resize(at);
    blockOf_.assign(ir_.code.size(), -1);
    for (size_t b = 0; b < blocks_.size(); ++b) blockOf_[blocks_[b].begin] = static_cast<int>(b);
  }

  const Inst* startOf(int block) const { return function_.code.data() + starts_[block]; }
  const Inst* targetOf(int label) const { return startOf(blockOf_[ir_.labels[label]]); }

  void emit() {
    size_t at = 0;
    for (const BasicBlock& block : blocks_) {
      if (block.isJoin) {
        Inst& join = function_.code[at];
        join = {};
        join.run[0] = joinWhole;
        join.run[1] = joinMasked;
        function_.lines[at++] = ir_.code[block.begin].line;
      }
      for (int i = block.begin; i < block.end; ++i, ++at) {
        function_.code[at] = make(ir_.code[i], block);
        function_.lines[at] = ir_.code[i].line;
      }
    }
  }

  Inst make(const IrInst& from, const BasicBlock& block) {
    Inst inst{};
    inst.run[0] = from.whole;
    inst.run[1] = from.masked;
    for (int k = 0; k < from.ops; ++k) inst.op[k] = offsetOf(from.op[k]);
    if (from.form) inst.op[7] = from.form;
    inst.imm = from.imm;
    inst.aux = from.aux;
    if (!from.wideOuts.empty() || !from.wideIns.empty()) {
      auto operands = std::make_unique<WideOperands>();
      for (const Value& value : from.wideOuts) operands->outs.push_back(offsetOf(value));
      for (const Value& value : from.wideIns) operands->ins.push_back(offsetOf(value));
      inst.aux = operands.get();
      inst.op[0] = from.raw0;
      inst.op[1] = from.raw1;
      function_.wideOperands.push_back(std::move(operands));
    }
    const Inst* join = block.join >= 0 ? startOf(block.join) : nullptr;
    switch (from.flow) {
      case Flow::guard:
        inst.op[1] = from.raw1;
        break;
      case Flow::jumpIf:
        inst.op[1] = from.raw1;
        inst.join = join;
        [[fallthrough]];
      case Flow::jump:
        inst.target = targetOf(from.label);
        break;
      case Flow::jumpIndexed: {
        auto targets = std::make_unique<IndexedTargets>();
        for (const int label : ir_.tables[from.table]) targets->targets.push_back(targetOf(label));
        inst.aux = targets.get();
        inst.target = join;
        function_.tables.push_back(std::move(targets));
        break;
      }
      default:
        break;
    }
    if (from.flow >= Flow::jump || from.joinAfter) inst.op[7] = block.end - block.begin + 3;
    if (from.aux && from.whole == callIndirect) findSite(from.aux)->target = offsetOf(from.op[0]);
    return inst;
  }

  CallSite* findSite(const void* aux) const {
    for (const auto& site : function_.calls)
      if (site.get() == aux) return site.get();
    return nullptr;
  }

  Ir& ir_;
  Function& function_;
  std::vector<BasicBlock> blocks_;
  std::vector<int32_t> offsets_;
  std::vector<size_t> starts_;
  std::vector<int> blockOf_;
  int32_t fixedBase_ = 0, registerBase_ = 0;
};

}  // namespace

void assemble(Ir& ir, Function& function) { Assembler(ir, function).run(); }

}  // namespace vgpu::emulator
