// cp.async.bulk, cp.reduce.async.bulk and their tensor forms, tensormap.replace.
#include "stub/emulator/ptx/run/bulk-copy.h"

#include <algorithm>

#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {
namespace {

template <size_t N>
std::optional<uint8_t> indexOf(const std::string_view (&names)[N], std::string_view name) {
  const auto* const found = std::ranges::find(names, name);
  return found == std::end(names) ? std::nullopt : std::optional(static_cast<uint8_t>(found - names));
}

// The direction of a bulk instruction, from the first two state spaces in its name.
struct Spaces {
  bool toShared = false, fromShared = false;
  size_t end = 0;  // index of the part after them
};
Spaces spacesOf(Decoder& decoder, const Statement& statement, size_t first) {
  if (statement.parts.size() < first + 2) decoder.unsupported(statement);
  const std::string_view to = statement.parts[first], from = statement.parts[first + 1];
  const bool known = (to.starts_with("shared") || to == "global") && (from == "global" || from == "shared::cta");
  Spaces spaces{to != "global", from != "global", first + 2};
  if (!known || (!spaces.toShared && !spaces.fromShared)) decoder.unsupported(statement);
  return spaces;
}

// Parses the reduction in `parts` from `first` on; also its type, except for tensors.
void parseReduction(Decoder& decoder, const Statement& statement, size_t first, bool typed, BulkForm& form) {
  std::optional<uint8_t> operation;
  for (size_t i = first; i < statement.parts.size() && !operation; ++i) operation = indexOf(bulkReductions, statement.parts[i]);
  if (!operation) decoder.unsupported(statement);
  form.reduction = static_cast<uint8_t>(*operation + 1);
  if (!typed) return;
  const auto type = indexOf(bulkTypes, statement.last());
  if (!type || !findReduction(form.reduction, statement.last())) decoder.unsupported(statement);
  form.type = *type;
}

void requireKnown(Decoder& decoder, const Statement& statement, size_t first) {
  for (size_t i = first; i < statement.parts.size(); ++i) {
    const std::string_view part = statement.parts[i];
    if (part == "cp_mask" || part.starts_with("cta_group") || part.starts_with("tile::") || part == "im2col::w" ||
        part == "im2col::w::128")
      decoder.unsupported(statement);
  }
}

Value orNone(Decoder& decoder, const Statement& statement, bool there, size_t& next, uint32_t bytes, bool isAddress) {
  if (!there) return decoder.build().constant(bytes, 0);
  if (next >= statement.operands.size()) decoder.operandCount(statement, next + 1, next + 1);
  const Operand& operand = statement.operands[next++];
  return isAddress ? decoder.genericAddress(operand, true) : decoder.source(operand, bytes);
}

// cp.async.bulk.to.from.completion [to], [from], bytes{, [mbarrier]}{, blocks}{, policy}; in cp.reduce the operation and type are at the
// end of the name.
void copy(Decoder& decoder, const Statement& statement, bool reduces) {
  const size_t first = reduces ? 4 : 3;
  const Spaces spaces = spacesOf(decoder, statement, first);
  requireKnown(decoder, statement, spaces.end);
  BulkForm form;
  form.toShared = spaces.toShared;
  form.completes = statement.has("mbarrier::complete_tx::bytes");
  form.multicast = statement.has("multicast::cluster");
  if (form.completes != spaces.toShared) decoder.unsupported(statement);
  if (reduces) parseReduction(decoder, statement, spaces.end, true, form);
  decoder.operandCount(statement, form.completes ? 4 : 3, 6);
  const Value to = decoder.genericAddress(statement.operands[0], spaces.toShared),
              from = decoder.genericAddress(statement.operands[1], spaces.fromShared),
              bytes = decoder.source(statement.operands[2], 4);
  size_t next = 3;
  const Value barrier = orNone(decoder, statement, form.completes, next, 8, true),
              blocks = orNone(decoder, statement, form.multicast, next, 4, false);
  decoder.build().wide(copyBulk, {}, {to, from, bytes, barrier, blocks}).imm = bitsOf(form);
}

// The operand [map, {c0, c1, …}].
std::vector<Value> coordinatesOf(Decoder& decoder, const Statement& statement, const Operand& tensor, uint32_t rank) {
  if (tensor.kind != Operand::Kind::memory || tensor.parts.size() != 1 || tensor.parts[0].parts.size() != rank)
    decoder.invalid(statement.line, "a tensor map with " + std::to_string(rank) + " coordinates is needed here");
  std::vector<Value> values;
  for (const Operand& each : tensor.parts[0].parts) values.push_back(decoder.source(each, 4));
  return values;
}

// cp.async.bulk.tensor.2d.to.from.mode.completion [to], [map, {…}], [mbarrier]{, {offsets}}{, blocks}{, policy}; a store has
// [map, {…}], [from].
void copyTensorBox(Decoder& decoder, const Statement& statement, bool reduces) {
  const size_t dimension = reduces ? 5 : 4;
  if (statement.parts.size() < dimension + 3) decoder.unsupported(statement);
  const std::string_view rank = statement.parts[dimension];
  if (rank.size() != 2 || rank[0] < '1' || rank[0] > '5' || rank[1] != 'd') decoder.unsupported(statement);
  const Spaces spaces = spacesOf(decoder, statement, dimension + 1);
  requireKnown(decoder, statement, spaces.end);
  BulkForm form;
  form.rank = static_cast<uint8_t>(rank[0] - '0');
  form.toShared = form.completes = spaces.toShared;
  form.multicast = statement.has("multicast::cluster");
  form.offsets = statement.has("im2col");
  if (reduces) parseReduction(decoder, statement, spaces.end, false, form);
  if (spaces.toShared != statement.has("mbarrier::complete_tx::bytes") || (form.offsets && (form.rank < 3 || !spaces.toShared)))
    decoder.unsupported(statement);
  decoder.operandCount(statement, spaces.toShared ? 3 : 2, 6);
  const Operand &tensor = statement.operands[spaces.toShared ? 1 : 0], &memory = statement.operands[spaces.toShared ? 0 : 1];
  const std::vector<Value> coordinates = coordinatesOf(decoder, statement, tensor, form.rank);
  Operand map = tensor;
  map.parts.clear();
  const Value shared = decoder.genericAddress(memory, true), address = decoder.genericAddress(map, false);
  size_t next = 2;
  const Value barrier = orNone(decoder, statement, form.completes, next, 8, true);
  std::vector<Value> offsets;
  if (form.offsets) {
    if (next >= statement.operands.size() || statement.operands[next].parts.size() != form.rank - 2u)
      decoder.invalid(statement.line, "an offset for each of the tensor's spatial dimensions is needed here");
    for (const Operand& each : statement.operands[next].parts) offsets.push_back(decoder.source(each, 4));
    ++next;
  }
  std::vector<Value> ins{shared, address, barrier, orNone(decoder, statement, form.multicast, next, 4, false)};
  ins.insert(ins.end(), coordinates.begin(), coordinates.end());
  ins.insert(ins.end(), offsets.begin(), offsets.end());
  decoder.build().wide(copyTensor, {}, ins).imm = bitsOf(form);
}

constexpr std::string_view fieldNames[] = {"global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
                                           "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity",
                                           "fill_mode"};

// tensormap.replace.tile.field.space.b1024.type [map], {which,} value
void replaceField(Decoder& decoder, const Statement& statement) {
  const auto index = statement.parts.size() > 4 ? indexOf(fieldNames, statement.parts[3]) : std::nullopt;
  if (!index || !statement.has("tile")) decoder.unsupported(statement);
  const auto field = static_cast<TensorField>(*index);
  const bool ofDimension =
      field == TensorField::box || field == TensorField::extent || field == TensorField::stride || field == TensorField::step;
  decoder.operandCount(statement, ofDimension ? 3 : 2, ofDimension ? 3 : 2);
  const Operand& which = statement.operands[1];
  if (ofDimension && (which.kind != Operand::Kind::number || which.whole > 4))
    decoder.invalid(statement.line, "a tensor has at most five dimensions");
  const Operand& operand = statement.operands.back();
  Value value;
  if (statement.last() == "b64") {
    value = decoder.source(operand, 8);
  } else {
    value = decoder.build().reg(8);
    decoder.build().lane("extend.u32", value, {decoder.source(operand, 4)});
  }
  const Value address = decoder.genericAddress(statement.operands[0], statement.has("shared::cta"));
  decoder.build().add(replaceTensorField, {}, {address, value}).imm = *index | (ofDimension ? which.whole << 8 : 0);
}

}  // namespace

void decodeBulk(Decoder& decoder, const Statement& statement) {
  if (statement.has("commit_group") || statement.has("wait_group") || statement.has("prefetch")) return;
  const bool reduces = statement.parts[1] == "reduce";
  statement.has("tensor") ? copyTensorBox(decoder, statement, reduces) : copy(decoder, statement, reduces);
}

// tensormap.cp_fenceproxy copies a map from shared to global memory; all threads of the warp make the same copy.
void decodeTensorMap(Decoder& decoder, const Statement& statement) {
  if (statement.parts.size() > 1 && statement.parts[1] == "replace") return replaceField(decoder, statement);
  if (statement.parts.size() < 4 || statement.parts[1] != "cp_fenceproxy") decoder.unsupported(statement);
  decoder.operandCount(statement, 3, 3);
  const Value to = decoder.genericAddress(statement.operands[0], false),
              from = decoder.genericAddress(statement.operands[1], true), bytes = decoder.source(statement.operands[2], 4),
              none = decoder.build().constant(8, 0);
  decoder.build().wide(copyBulk, {}, {to, from, bytes, none, decoder.build().constant(4, 0)}).imm = bitsOf(BulkForm{});
}

}  // namespace vgpu::emulator
