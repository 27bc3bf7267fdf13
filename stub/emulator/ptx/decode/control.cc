// Branches, returns, exits, block barriers.
#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/run/cluster.h"
#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {
namespace {

const Operand& nameOperand(Decoder& decoder, const Statement& statement, size_t index) {
  if (index >= statement.operands.size() || statement.operands[index].kind != Operand::Kind::name)
    decoder.invalid(statement.line, "'" + std::string(statement.opcode) + "' needs a name");
  return statement.operands[index];
}

void bra(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 1, 1);
  const int label = decoder.labelOf(nameOperand(decoder, statement, 0).name, statement.line);
  if (const Value guard = decoder.controlGuard())
    decoder.build().jumpIf(guard, decoder.controlGuardNegated(), label);
  else
    decoder.build().jump(label);
}

void brx(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 2, 2);
  const Symbol* targets = decoder.find(nameOperand(decoder, statement, 1).name);
  if (!targets || targets->kind != Symbol::Kind::targets)
    decoder.invalid(statement.line, "brx.idx needs a .branchtargets label");
  const int table = static_cast<int>(decoder.ir().tables.size());
  decoder.ir().tables.push_back(targets->labels);
  IrInst& inst = decoder.build().add(branchIndexed, {}, {decoder.source(statement.operands[0], 4)});
  inst.flow = IrInst::Flow::jumpIndexed;
  inst.table = table;
}

void ret(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 0, 0);
  if (decoder.decl().isKernel)
    decoder.build().add(exitThread, {}, {}).flow = IrInst::Flow::exit;
  else
    decoder.build().jump(decoder.epilogue());
}

void exitNow(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 0, 0);
  decoder.build().add(exitThread, {}, {}).flow = IrInst::Flow::exit;
}

void trapNow(Decoder& decoder, const Statement&) { decoder.build().add(trap, {}, {}).flow = IrInst::Flow::end; }
// Multicast memory does not exist here, so no address is valid. A kernel that contains such instructions runs as long as it does not reach
// them.
void multicastNow(Decoder& decoder, const Statement&) { decoder.build().add(noMulticast, {}, {}).flow = IrInst::Flow::end; }
void ignore(Decoder&, const Statement&) {}
void nanosleep(Decoder& decoder, const Statement&) { decoder.build().add(sleepNow, {}, {}); }

// ---- bar, barrier
struct BarrierForm {
  bool arrives = false, reduces = false;
  std::string_view reduction;  // popc, and, or
};

BarrierForm parseBarrier(Decoder& decoder, const Statement& statement) {
  BarrierForm form;
  for (size_t i = 1; i < statement.parts.size(); ++i) {
    const std::string_view part = statement.parts[i];
    if (part == "arrive")
      form.arrives = true;
    else if (part == "red")
      form.reduces = true;
    else if (part == "popc" || part == "and" || part == "or")
      form.reduction = part;
    else if (part != "sync" && part != "cta" && part != "aligned" && part != "u32" && part != "pred")
      decoder.unsupported(statement);
  }
  return form;
}

void barrierOf(Decoder& decoder, const Statement& statement) {
  if (statement.has("cluster")) {
    decoder.operandCount(statement, 0, 0);
    if (statement.has("arrive") == statement.has("wait")) decoder.unsupported(statement);
    decoder.build().add(statement.has("wait") ? clusterWait : clusterArrive, {}, {});
    return;
  }
  const BarrierForm form = parseBarrier(decoder, statement);
  const auto& operands = statement.operands;
  const size_t first = form.reduces ? 1 : 0, after = operands.size() - (form.reduces ? 1 : 0);
  decoder.operandCount(statement, form.reduces ? 3 : 1, form.reduces ? 4 : 2);
  const bool counted = after - first > 1;
  Builder& build = decoder.build();
  const Value index = decoder.source(operands[first], 4);
  const Value count = counted ? decoder.source(operands[first + 1], 4) : build.constant(4, 0);
  Value predicate = build.constant(4, 0);
  uint64_t bits =
      (counted ? barrierHasCount : 0) | (form.arrives ? barrierArrives : 0) | (form.reduces ? barrierReduces : 0);
  if (form.reduces) predicate = decoder.predicate(operands.back());
  build.add(barrier, {}, {index, count, predicate}).imm = bits;
  if (!form.reduces) return;
  const Handler result = form.reduction == "popc"  ? barrierCount
                         : form.reduction == "and" ? barrierAll
                         : form.reduction == "or"  ? barrierAny
                                                   : nullptr;
  if (!result) decoder.unsupported(statement);
  build.add(result, {decoder.target(operands[0], 4)}, {index});
}

constexpr DecodeRow decodeRows[] = {
    {"bra", bra, true},         {"brx", brx, true},      {"ret", ret, true},         {"exit", exitNow, true},
    {"call", decodeCall, true}, {"trap", trapNow, true}, {"brkpt", trapNow, true},   {"barrier", barrierOf, true},
    {"nanosleep", nanosleep},   {"pmevent", ignore},     {"griddepcontrol", ignore}, {"multimem", multicastNow, true},
};

}  // namespace

std::span<const DecodeRow> controlDecodes() { return decodeRows; }

// `bar.warp.sync` and `bar.sync` have the same mnemonic.
void decodeBlockBarrier(Decoder& decoder, const Statement& statement) { barrierOf(decoder, statement); }

}  // namespace vgpu::emulator
