// Branches, calls, returns, exits, block barriers.
#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/decode/linker.h"
#include "stub/emulator/ptx/run/builtins.h"
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
// A device without multicast has no address for it. A kernel that has such instructions for others runs as long as it does not come there.
void multicastNow(Decoder& decoder, const Statement&) { decoder.build().add(noMulticast, {}, {}).flow = IrInst::Flow::end; }
void ignore(Decoder&, const Statement&) {}

// ---- call (results), target, (arguments), prototype;
struct CallText {
  const Operand* results = nullptr;
  const Operand* target = nullptr;
  const Operand* arguments = nullptr;
};

CallText split(Decoder& decoder, const Statement& statement) {
  CallText text;
  for (const Operand& operand : statement.operands) {
    if (operand.kind == Operand::Kind::list)
      (text.target ? text.arguments : text.results) = &operand;
    else if (operand.kind == Operand::Kind::name && !text.target)
      text.target = &operand;
    else if (operand.kind != Operand::Kind::name)
      decoder.invalid(statement.line, "a call with an operand of another kind");
  }
  if (!text.target) decoder.invalid(statement.line, "a call without a target");
  return text;
}

std::vector<Slot> slotsOf(Decoder& decoder, const Operand* list) {
  std::vector<Slot> slots;
  if (!list) return slots;
  for (const Operand& operand : list->parts) {
    const Symbol* symbol = operand.kind == Operand::Kind::name ? decoder.find(operand.name) : nullptr;
    if (!symbol || symbol->kind != Symbol::Kind::parameter)
      decoder.unsupported(operand.line, "a call whose arguments are not .param variables");
    slots.push_back({static_cast<int32_t>(symbol->offset), (symbol->bytes + 3) / 4 * 4 * laneCount});
  }
  return slots;
}

void checkShape(Decoder& decoder, const Statement& statement, const FunctionDecl& callee, const CallSite& site) {
  const auto agree = [](const std::vector<ParameterDecl>& declared, const std::vector<Slot>& given) {
    if (declared.size() != given.size()) return false;
    for (size_t i = 0; i < given.size(); ++i)
      if ((declared[i].bytes + 3) / 4 * 4 * laneCount != given[i].bytes) return false;
    return true;
  };
  if (!agree(callee.parameters, site.arguments) || !agree(callee.results, site.results))
    decoder.invalid(statement.line, "the call of '" + callee.name + "' does not fit its declaration");
}

void emitCall(Decoder& decoder, const Statement& statement, const Operand& target, CallSite& site) {
  if (const Symbol* symbol = decoder.findRegister(target)) {
    decoder.linker().noteIndirectCall();
    if (symbol->value.bytes != 8) decoder.invalid(statement.line, "a call through a register that is not 64 bits wide");
    IrInst& inst = decoder.build().add(callIndirect, {}, {symbol->value});
    inst.aux = &site;
    inst.joinAfter = true;
    return;
  }
  const FunctionDecl* callee = decoder.linker().findFunction(target.name);
  if (!callee) decoder.invalid(statement.line, "'" + std::string(target.name) + "' is no function");
  checkShape(decoder, statement, *callee, site);
  site.calleeName = callee->name;
  if (callee->hasBody) {
    if (callee->isKernel) decoder.unsupported(statement.line, "a call of a kernel");
    site.callee = decoder.linker().function(target.name, statement.line);
    decoder.build().add(callDirect, {}, {}).aux = &site;
    return;
  }
  const Handler builtin = findBuiltin(callee->name, site.arguments.size(), site.results.size());
  if (!builtin)
    decoder.unsupported(statement.line, "function '" + callee->name + "', which is declared but not defined,");
  decoder.build().add(builtin, {}, {}).aux = &site;
}

void call(Decoder& decoder, const Statement& statement) {
  const CallText text = split(decoder, statement);
  auto site = std::make_unique<CallSite>();
  site->results = slotsOf(decoder, text.results);
  site->arguments = slotsOf(decoder, text.arguments);
  emitCall(decoder, statement, *text.target, *site);
  decoder.function().calls.push_back(std::move(site));
}

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
    {"bra", bra, true},    {"brx", brx, true},      {"ret", ret, true},         {"exit", exitNow, true},
    {"call", call, true},  {"trap", trapNow, true}, {"brkpt", trapNow, true},   {"barrier", barrierOf, true},
    {"nanosleep", ignore}, {"pmevent", ignore},     {"griddepcontrol", ignore}, {"multimem", multicastNow, true},
};

}  // namespace

std::span<const DecodeRow> controlDecodes() { return decodeRows; }

// `bar.warp.sync` and `bar.sync` share a mnemonic.
void decodeBlockBarrier(Decoder& decoder, const Statement& statement) { barrierOf(decoder, statement); }

}  // namespace vgpu::emulator
