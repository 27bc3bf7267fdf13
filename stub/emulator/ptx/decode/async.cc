// mbarrier, cp.async and its groups, the instructions that name a block within its cluster, and requests for another block's work.
#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/run/cluster.h"
#include "stub/emulator/ptx/run/mbarrier.h"

namespace vgpu::emulator {

void decodeBulk(Decoder&, const Statement&);
void decodeTensorMap(Decoder&, const Statement&);

namespace {

AddressKind kindOf(const Statement& statement) {
  for (const std::string_view part : statement.parts)
    if (part.starts_with("shared")) return AddressKind::shared;
  return AddressKind::generic;
}

// A barrier's address; a 32-bit register holds an offset in shared memory.
Decoder::Address barrierAddress(Decoder& decoder, const Operand& operand, AddressKind& kind) {
  const Decoder::Address address = decoder.address(operand);
  if (address.base.bytes == 4) kind = AddressKind::shared32;
  return address;
}

void emit(Decoder& decoder, const Statement& statement, Handler handler, Value out, const Operand& memory,
          Value operand) {
  AddressKind kind = kindOf(statement);
  const Decoder::Address address = barrierAddress(decoder, memory, kind);
  IrInst& inst = decoder.build().add(handler, {out}, {address.base, operand});
  inst.imm = address.offset;
  inst.form = AccessForm{kind, 1, 1}.bits();
}

void arriveOn(Decoder& decoder, const Statement& statement, bool drop) {
  // There is no state operand for a barrier of another block of the cluster.
  const bool hasState = statement.operands[0].kind != Operand::Kind::memory;
  const size_t at = hasState ? 1 : 0;
  decoder.operandCount(statement, at + 1, at + 2);
  const bool expects = statement.has("expect_tx");
  if (expects) decoder.operandCount(statement, at + 2, at + 2);
  const Value out = hasState ? decoder.target(statement.operands[0], 8) : decoder.build().reg(8);
  const Value operand =
      statement.operands.size() > at + 1 ? decoder.source(statement.operands[at + 1], 4) : decoder.build().constant(4, 1);
  emit(decoder, statement,
       expects && drop ? mbarrierDropExpect
       : expects       ? mbarrierArriveExpect
       : drop          ? mbarrierArriveDrop
                       : mbarrierArrive,
       out, statement.operands[at], operand);
}

void waitOn(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 3, 4);
  const bool parity = statement.has("parity");
  const Value operand = decoder.source(statement.operands[2], parity ? 4 : 8);
  emit(decoder, statement, parity ? mbarrierTestParity : mbarrierTestState, decoder.target(statement.operands[0], 4),
       statement.operands[1], operand);
}

void transaction(Decoder& decoder, const Statement& statement, Handler handler) {
  decoder.operandCount(statement, 2, 2);
  emit(decoder, statement, handler, decoder.build().reg(8), statement.operands[0],
       decoder.source(statement.operands[1], 4));
}

void mbarrier(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 1, 4);
  const std::string_view operation = statement.parts.size() > 1 ? statement.parts[1] : "";
  if (operation == "init") return transaction(decoder, statement, mbarrierInit);
  if (operation == "inval") return;
  if (operation == "arrive") return arriveOn(decoder, statement, false);
  if (operation == "arrive_drop") return arriveOn(decoder, statement, true);
  if (operation == "expect_tx") return transaction(decoder, statement, mbarrierExpect);
  if (operation == "complete_tx") return transaction(decoder, statement, mbarrierComplete);
  if (operation == "test_wait" || operation == "try_wait") return waitOn(decoder, statement);
  if (operation != "pending_count") decoder.unsupported(statement);
  decoder.operandCount(statement, 2, 2);
  const Value state = decoder.source(statement.operands[1], 8);
  decoder.build().add(mbarrierPending, {decoder.target(statement.operands[0], 4)}, {state});
}

void copyOrGroup(Decoder& decoder, const Statement& statement) {
  if (statement.has("bulk")) return decodeBulk(decoder, statement);
  if (statement.parts.size() < 2 || statement.parts[1] != "async") decoder.unsupported(statement);
  if (statement.has("commit_group") || statement.has("wait_group") || statement.has("wait_all")) return;
  Builder& build = decoder.build();
  if (statement.has("mbarrier")) {
    // Without .noinc the phase also expects one more arrival: the two cancel each other out.
    decoder.operandCount(statement, 1, 1);
    if (statement.has("noinc"))
      emit(decoder, statement, mbarrierArrive, build.reg(8), statement.operands[0], build.constant(4, 1));
    return;
  }
  decoder.operandCount(statement, 3, 5);
  const Value to = decoder.genericAddress(statement.operands[0], true),
              from = decoder.genericAddress(statement.operands[1], false);
  const Value bytes = decoder.source(statement.operands[2], 4);
  Value reads = bytes;
  // With a cache hint, the last operand is a cache policy.
  if (statement.operands.size() > (statement.has("L2::cache_hint") ? 4 : 3)) {
    const Operand& fourth = statement.operands[3];
    const Symbol* symbol = decoder.findRegister(fourth);
    if (symbol && symbol->type == Type::pred) {
      reads = build.reg(4);
      build.lane("selp.b32", reads, {build.constant(4, 0), bytes, decoder.predicate(fourth)});
    } else {
      reads = decoder.source(fourth, 4);
    }
  }
  build.add(copyAsync, {}, {to, from, reads, bytes});
}

void mapAddress(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 3, 3);
  const uint32_t bytes = statement.last() == "u64" ? 8 : 4;
  const Value address = decoder.source(statement.operands[1], bytes), rank = decoder.source(statement.operands[2], 4);
  decoder.build().add(bytes == 8 ? mapAddress64 : mapAddress32, {decoder.target(statement.operands[0], bytes)}, {address, rank});
}
void rankOf(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 2, 2);
  const uint32_t bytes = statement.last() == "u64" ? 8 : 4;
  const Value address = decoder.source(statement.operands[1], bytes);
  decoder.build().add(bytes == 8 ? rankOfAddress64 : rankOfAddress32, {decoder.target(statement.operands[0], 4)}, {address});
}

// clusterlaunchcontrol: a block asks to take over the work of one that has not started. The emulator always declines, as a GPU may: the
// response is all zeros.
void launchControl(Decoder& decoder, const Statement& statement) {
  Builder& build = decoder.build();
  if (statement.has("try_cancel") && statement.last() == "b128" && !statement.has("multicast::cluster::all")) {
    decoder.operandCount(statement, 2, 2);
    const Value response = decoder.genericAddress(statement.operands[0], true);
    build.add(copyAsync, {}, {response, response, build.constant(4, 0), build.constant(4, 16)});
    return emit(decoder, statement, mbarrierComplete, build.reg(8), statement.operands[1], build.constant(4, 16));
  }
  if (!statement.has("query_cancel")) decoder.unsupported(statement);
  decoder.operandCount(statement, 2, 2);
  const Operand& out = statement.operands[0];
  for (const Operand& each : out.kind == Operand::Kind::vector ? out.parts : std::vector{out})
    build.move(decoder.target(each, 4), build.constant(4, 0));
}

constexpr DecodeRow decodeRows[] = {
    {"mbarrier", mbarrier}, {"cp", copyOrGroup}, {"mapa", mapAddress}, {"getctarank", rankOf}, {"tensormap", decodeTensorMap},
    {"clusterlaunchcontrol", launchControl}};

}  // namespace

// The transactions of st.async and red.async: adds `bytes` at the barrier at `memory`.
void decodeTransaction(Decoder& decoder, const Statement& statement, const Operand& memory, uint32_t bytes) {
  emit(decoder, statement, mbarrierComplete, decoder.build().reg(8), memory, decoder.build().constant(4, bytes));
}

std::span<const DecodeRow> asyncDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
