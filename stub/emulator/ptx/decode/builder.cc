#include "stub/emulator/ptx/decode/ir.h"
#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {

Value Builder::reg(uint32_t bytes) {
  ir.registers.push_back(static_cast<uint8_t>(bytes));
  return {Value::Kind::reg, static_cast<uint8_t>(bytes), static_cast<int32_t>(ir.registers.size() - 1)};
}

Value Builder::constant(uint32_t bytes, uint64_t lo, uint64_t hi) {
  if (bytes == 4) lo &= 0xffffffff;
  const auto [entry, added] = known.emplace(std::make_tuple(bytes, lo, hi), static_cast<int>(ir.constants.size()));
  if (added) ir.constants.push_back({0, bytes, lo, hi});
  return {Value::Kind::constant, static_cast<uint8_t>(bytes), entry->second};
}

Value Builder::dynamicShared(uint32_t bytes, uint64_t addend) {
  const auto [entry, added] =
      knownDynamic.emplace(std::make_pair(bytes, addend), static_cast<int>(ir.constants.size()));
  if (added) {
    ir.dynamicShared.push_back(static_cast<int>(ir.constants.size()));
    ir.constants.push_back({0, bytes, addend, 0});
  }
  return {Value::Kind::constant, static_cast<uint8_t>(bytes), entry->second};
}

uint32_t Builder::reserveFixed(uint32_t words) {
  const uint32_t offset = fixedTop;
  fixedTop += words * 4 * laneCount;
  ir.fixedBytes = std::max(ir.fixedBytes, fixedTop);
  if (fixedTop > (1u << 28))
    throw PtxError(PtxError::Kind::unsupported, line.ptx, "more than 2 MiB of parameters of calls in one scope");
  return offset;
}

int Builder::newLabel() {
  ir.labels.push_back(-1);
  return static_cast<int>(ir.labels.size()) - 1;
}

IrInst& Builder::push(Handler whole, Handler masked) {
  if (guardPredicate) {
    IrInst& under = ir.code.emplace_back();
    under.whole = under.masked = guard;
    under.flow = IrInst::Flow::guard;
    under.ops = 1;
    under.op[0] = guardPredicate;
    under.raw1 = guardNegated ? -1 : 0;
    under.line = line;
  }
  IrInst& inst = ir.code.emplace_back();
  inst.whole = whole;
  inst.masked = masked;
  inst.guarded = static_cast<bool>(guardPredicate);
  inst.line = line;
  return inst;
}

IrInst& Builder::add(Handler handler, std::initializer_list<Value> outs, std::initializer_list<Value> ins) {
  IrInst& inst = push(handler, handler);
  for (const Value& value : outs) inst.op[inst.ops++] = value;
  inst.outs = inst.ops;
  for (const Value& value : ins) inst.op[inst.ops++] = value;
  return inst;
}

IrInst& Builder::wide(Handler handler, std::vector<Value> outs, std::vector<Value> ins) {
  IrInst& inst = push(handler, handler);
  inst.wideOuts = std::move(outs);
  inst.wideIns = std::move(ins);
  return inst;
}

void Builder::row(const Row& row, Value out, const Value* in) {
  IrInst& inst = push(row.handler, row.out.registerBytes == 4   ? masked4
                                   : row.out.registerBytes == 8 ? masked8
                                                                : masked16);
  inst.op[0] = out;
  inst.outs = 1;
  for (int i = 0; i < row.inputs; ++i) inst.op[i + 1] = in[i];
  inst.ops = static_cast<uint8_t>(row.inputs + 1);
}

void Builder::lane(std::string_view name, Value out, std::initializer_list<Value> ins) {
  const Row* found = registry().find(name);
  // Names are composed of an instruction's modifiers: if the name does not exist, neither does the instruction.
  if (!found || found->inputs != ins.size())
    throw PtxError(PtxError::Kind::unsupported, line.ptx,
                   "operation '" + std::string(name) + "' is not supported by the emulated device");
  row(*found, out, ins.begin());
}

void Builder::move(Value to, Value from) {
  lane(to.bytes == 4 ? "mov.b32" : to.bytes == 8 ? "mov.b64" : "mov.b128", to, {from});
}

void Builder::jump(int label) {
  IrInst& inst = push(branch, branch);
  inst.flow = IrInst::Flow::jump;
  inst.label = label;
}

void Builder::jumpIf(Value predicate, bool negated, int label) {
  IrInst& inst = push(branchIf, branchIf);
  inst.flow = IrInst::Flow::jumpIf;
  inst.ops = 1;
  inst.op[0] = predicate;
  inst.raw1 = negated ? -1 : 0;
  inst.label = label;
}

}  // namespace vgpu::emulator
