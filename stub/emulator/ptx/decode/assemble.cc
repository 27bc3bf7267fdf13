// Converts instructions over virtual registers to the array that the interpreter runs.
#include <cstring>

#include "stub/emulator/ptx/decode/ir.h"
#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {
namespace {

using Flow = IrInst::Flow;

class Assembler {
 public:
  Assembler(Ir& ir, Function& function) : ir(ir), function(function) {}

  void run() {
    if (ir.code.empty() || ir.code.back().flow < Flow::jump || ir.code.back().flow == Flow::jumpIf) closeOpenEnd();
    checkLabels();
    blocks = findBlocks(ir);
    const uint32_t registerBytes = allocateRegisters(ir, blocks, offsets, function.registers);
    layOutFrame(registerBytes);
    place();
    emit();
  }

 private:
  // Code after the last ret, or a body without one, ends with an implicit ret.
  void closeOpenEnd() {
    IrInst& inst = ir.code.emplace_back();
    inst.whole = inst.masked = ir.isKernel ? exitThread : returnCall;
    inst.flow = ir.isKernel ? Flow::exit : Flow::end;
    if (ir.code.size() > 1) inst.line = ir.code[ir.code.size() - 2].line;
  }

  void checkLabels() {
    for (int& at : ir.labels)
      if (at >= static_cast<int>(ir.code.size())) {
        closeOpenEnd();
        break;
      }
  }

  void layOutFrame(uint32_t registerBytes) {
    if (ir.constants.size() > (1u << 20))
      throw PtxError(PtxError::Kind::unsupported, 0, "'" + function.name + "' has more than a million constants");
    uint32_t at = 0;
    for (FrameConstant& constant : ir.constants) {
      constant.offset = static_cast<int32_t>(at);
      at += constant.bytes * laneCount;
    }
    function.constants = ir.constants;
    fixedBase = static_cast<int32_t>(at);
    at += ir.fixedBytes;
    registerBase = static_cast<int32_t>(at);
    if (uint64_t{at} + registerBytes > (1u << 30))
      throw PtxError(PtxError::Kind::unsupported, 0,
                     "'" + function.name + "' needs more than 1 GiB for the registers of a warp");
    function.frameBytes = at + registerBytes;
    for (Slot& slot : function.parameters) slot.offset += fixedBase;
    for (Slot& slot : function.results) slot.offset += fixedBase;
    for (auto& site : function.calls) {
      for (Slot& slot : site->arguments) slot.offset += fixedBase;
      for (Slot& slot : site->results) slot.offset += fixedBase;
    }
  }

  int32_t offsetOf(const Value& value) const {
    switch (value.kind) {
      case Value::Kind::reg:
        return registerBase + offsets[value.id];
      case Value::Kind::constant:
        return ir.constants[value.id].offset;
      case Value::Kind::fixed:
        return fixedBase + value.id;
      default:
        return 0;
    }
  }

  // Computes the index of each block's first instruction: a block that is a join has an additional instruction.
  void place() {
    size_t at = 0;
    for (const BasicBlock& block : blocks) {
      starts.push_back(at);
      at += static_cast<size_t>(block.end - block.begin) + block.isJoin;
    }
    function.code.resize(at);
    function.lines.resize(at);
    blockOf.assign(ir.code.size(), -1);
    for (size_t b = 0; b < blocks.size(); ++b) blockOf[blocks[b].begin] = static_cast<int>(b);
  }

  const Inst* startOf(int block) const { return function.code.data() + starts[block]; }
  const Inst* targetOf(int label) const { return startOf(blockOf[ir.labels[label]]); }

  void emit() {
    size_t at = 0;
    for (const BasicBlock& block : blocks) {
      if (block.isJoin) {
        Inst& join = function.code[at];
        join = {};
        join.run[0] = joinWhole;
        join.run[1] = joinMasked;
        function.lines[at++] = ir.code[block.begin].line;
      }
      for (int i = block.begin; i < block.end; ++i, ++at) {
        function.code[at] = make(ir.code[i], block);
        function.lines[at] = ir.code[i].line;
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
      function.wideOperands.push_back(std::move(operands));
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
        for (const int label : ir.tables[from.table]) targets->targets.push_back(targetOf(label));
        inst.aux = targets.get();
        inst.target = join;
        function.tables.push_back(std::move(targets));
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
    for (const auto& site : function.calls)
      if (site.get() == aux) return site.get();
    return nullptr;
  }

  Ir& ir;
  Function& function;
  std::vector<BasicBlock> blocks;
  std::vector<int32_t> offsets;
  std::vector<size_t> starts;
  std::vector<int> blockOf;
  int32_t fixedBase = 0, registerBase = 0;
};

}  // namespace

void assemble(Ir& ir, Function& function) { Assembler(ir, function).run(); }

}  // namespace vgpu::emulator
