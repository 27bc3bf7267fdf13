// Collectives of a warp.
#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/run/collectives.h"

namespace vgpu::emulator {

void decodeBlockBarrier(Decoder&, const Statement&);

namespace {

// `d|p`, or `d` alone with the predicate dropped.
struct Targets {
  const Operand* value;
  const Operand* predicate;
};
Targets targetsOf(const Operand& operand) {
  if (operand.kind != Operand::Kind::pair) return {&operand, nullptr};
  return {&operand.parts[0], &operand.parts[1]};
}
Value predicateTarget(Decoder& decoder, const Targets& targets) {
  return targets.predicate ? decoder.target(*targets.predicate, 4) : decoder.build().reg(4);
}

void shfl(Decoder& decoder, const Statement& statement) {
  const bool sync = statement.has("sync");
  decoder.operandCount(statement, sync ? 5 : 4, sync ? 5 : 4);
  const ShuffleMode mode = statement.has("up")     ? ShuffleMode::up
                           : statement.has("down") ? ShuffleMode::down
                           : statement.has("bfly") ? ShuffleMode::bfly
                                                   : ShuffleMode::idx;
  if (statement.last() != "b32" || (mode == ShuffleMode::idx && !statement.has("idx"))) decoder.unsupported(statement);
  if (!sync) decoder.unsupported(statement);  // removed since sm_70
  const Targets to = targetsOf(statement.operands[0]);
  Value in[4];
  for (int i = 0; i < 4; ++i) in[i] = decoder.source(statement.operands[i + 1], 4);
  decoder.build()
      .add(shuffle, {decoder.target(*to.value, 4), predicateTarget(decoder, to)}, {in[0], in[1], in[2], in[3]})
      .imm = static_cast<uint64_t>(mode);
}

void vote(Decoder& decoder, const Statement& statement) {
  if (!statement.has("sync")) decoder.unsupported(statement);
  decoder.operandCount(statement, 3, 3);
  const Handler handler = statement.has("all")      ? voteAll
                          : statement.has("any")    ? voteAny
                          : statement.has("uni")    ? voteUniform
                          : statement.has("ballot") ? voteBallot
                                                    : nullptr;
  if (!handler) decoder.unsupported(statement);
  const Value p = decoder.predicate(statement.operands[1]), members = decoder.source(statement.operands[2], 4);
  decoder.build().add(handler, {decoder.target(statement.operands[0], 4)}, {p, members});
}

void match(Decoder& decoder, const Statement& statement) {
  if (!statement.has("sync")) decoder.unsupported(statement);
  decoder.operandCount(statement, 3, 3);
  const uint32_t bytes = statement.last() == "b64" ? 8 : 4;
  const bool all = statement.has("all");
  if (!all && !statement.has("any")) decoder.unsupported(statement);
  const Targets to = targetsOf(statement.operands[0]);
  const Value value = decoder.source(statement.operands[1], bytes), members = decoder.source(statement.operands[2], 4);
  decoder.build()
      .add(all ? matchAll : matchAny, {decoder.target(*to.value, 4), predicateTarget(decoder, to)}, {value, members})
      .imm = bytes;
}

void redux(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 3, 3);
  if (statement.parts.size() != 4 || statement.parts[1] != "sync") decoder.unsupported(statement);
  const Handler handler = findRedux(std::string(statement.parts[2]) + "." + std::string(statement.last()));
  if (!handler) decoder.unsupported(statement);
  const Value value = decoder.source(statement.operands[1], 4), members = decoder.source(statement.operands[2], 4);
  decoder.build().add(handler, {decoder.target(statement.operands[0], 4)}, {value, members});
}

void electOne(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 2, 2);
  const Targets to = targetsOf(statement.operands[0]);
  const Value members = decoder.source(statement.operands[1], 4);
  decoder.build().add(elect, {decoder.target(*to.value, 4), predicateTarget(decoder, to)}, {members});
}

void activemask(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 1, 1);
  decoder.build().add(activeMask, {decoder.target(statement.operands[0], 4)}, {});
}

void bar(Decoder& decoder, const Statement& statement) {
  if (!statement.has("warp")) return decodeBlockBarrier(decoder, statement);
  decoder.operandCount(statement, 1, 1);
  decoder.build().add(warpBarrier, {}, {decoder.source(statement.operands[0], 4)});
}

// Collectives wait for other lanes, so a guard is a branch around them.
constexpr DecodeRow decodeRows[] = {
    {"shfl", shfl, true}, {"vote", vote, true},      {"match", match, true},     {"redux", redux, true},
    {"bar", bar, true},   {"elect", electOne, true}, {"activemask", activemask},
};

}  // namespace

std::span<const DecodeRow> warpDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
