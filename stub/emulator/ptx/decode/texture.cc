// tex, tld4, suld.b, sust.b on texture and surface objects; the sampler is part of the texture (PTX ISA, "unified mode"). An object is a
// handle in a 64-bit register, or the name of a reference, which means the address of that variable: handles are small numbers, so they
// differ from all addresses.
#include <algorithm>
#include <bit>

#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/decode/linker.h"
#include "stub/emulator/ptx/run/bulk-copy.h"
#include "stub/emulator/ptx/run/texture.h"

namespace vgpu::emulator {
namespace {

struct GeometryRow {
  std::string_view name;
  Geometry geometry;
};
constexpr GeometryRow geometryRows[] = {
    {"1d", {1, false, false}}, {"2d", {2, false, false}},  {"3d", {3, false, false}},  {"a1d", {1, true, false}},
    {"a2d", {2, true, false}}, {"cube", {3, false, true}}, {"acube", {3, true, true}},
};

bool setGeometry(Geometry& geometry, std::string_view part) {
  for (const GeometryRow& row : geometryRows)
    if (row.name == part) return geometry = row.geometry, true;
  return false;
}

// The handle in a register, or the address of the reference of that type that the operand names.
Value objectOf(Decoder& decoder, const Operand& operand, Type reference) {
  Operand object;
  object.name = operand.name;
  object.line = operand.line;
  const bool isLocal = decoder.find(object.name) != nullptr;
  const VariableDecl* const variable = isLocal ? nullptr : decoder.linker().findVariable(object.name);
  if (operand.offset != 0 || !(variable || decoder.findRegister(object)))
    decoder.unsupported(operand.line, "a texture or surface that is neither a register nor a reference of the module");
  if (variable && variable->type != reference)
    decoder.invalid(operand.line, "'" + std::string(object.name) + "' is not a ." + std::string(nameOf(reference)));
  return decoder.source(object, 8);
}

// `[object, {coordinates}]`, or for one dimension `[object, coordinate]`: returns the object's operand.
Value handleOf(Decoder& decoder, const Operand& operand, Type reference) {
  if (operand.kind == Operand::Kind::memory && operand.parts.size() == 2)
    decoder.unsupported(operand.line, "a sampler separate from its texture (independent mode)");
  if (operand.kind != Operand::Kind::memory || operand.parts.size() != 1)
    decoder.unsupported(operand.line, "a texture or surface and its coordinates in an unknown form");
  return objectOf(decoder, operand, reference);
}

// Appends a vector of numbers; elements past `used` only fill the vector up to a length that PTX has.
void appendNumbers(Decoder& decoder, const Operand& operand, size_t used, Literal literal, std::vector<Value>& ins) {
  const bool vector = operand.kind == Operand::Kind::vector;
  const size_t given = vector ? operand.parts.size() : 1;
  if (given < used || given > 4) decoder.invalid(operand.line, "a vector of " + std::to_string(used) + " is needed");
  for (size_t i = 0; i < used; ++i) ins.push_back(decoder.source(vector ? operand.parts[i] : operand, 4, literal));
}

void appendPlace(Decoder& decoder, const Operand& operand, Type reference, const Geometry& geometry, Literal literal,
                 std::vector<Value>& ins) {
  ins.push_back(handleOf(decoder, operand, reference));
  Operand coordinates = operand.parts[0];
  if (geometry.layered) {
    if (coordinates.kind != Operand::Kind::vector || coordinates.parts.empty()) decoder.invalid(operand.line, "a layer is needed here");
    ins.push_back(decoder.source(coordinates.parts[0], 4));
    coordinates.parts.erase(coordinates.parts.begin());
  }
  appendNumbers(decoder, coordinates, geometry.axes, literal, ins);
}

struct TextureText {
  TextureForm form;
  size_t outputs = 0;
};

TextureText parseTexture(Decoder& decoder, const Statement& statement) {
  using Level = TextureForm::Level;
  TextureText found;
  if (statement.parts.size() < 5) decoder.unsupported(statement);
  const bool gathers = statement.parts[0] == "tld4";
  const std::string_view components = "rgba";
  for (size_t i = 1; i + 2 < statement.parts.size(); ++i) {
    const std::string_view part = statement.parts[i];
    if (part == "v4" || part == "v2")
      found.outputs = part == "v4" ? 4 : 2;
    else if (gathers && part.size() == 1 && components.find(part) != std::string_view::npos)
      found.form.level = Level::gather, found.form.component = static_cast<uint8_t>(components.find(part));
    else if (!gathers && (part == "level" || part == "grad"))
      found.form.level = part == "level" ? Level::given : Level::byGradients;
    else if (!(part == "base" && !gathers) && !setGeometry(found.form.geometry, part))
      decoder.unsupported(statement);
  }
  const std::string_view result = statement.parts[statement.parts.size() - 2], coordinate = statement.last();
  if (result == "f16")
    found.form.result = TextureForm::Result::half;
  else if (result == "f16x2")
    found.form.result = TextureForm::Result::half2;
  else if (result != "f32" && result != "s32" && result != "u32")
    decoder.unsupported(statement);
  found.form.whole = coordinate == "s32";
  const Geometry& geometry = found.form.geometry;
  const bool knows = geometry.axes != 0 && found.outputs == (result == "f16x2" ? 2 : 4) &&
                     (found.form.whole || coordinate == "f32") && !(found.form.whole && geometry.cube) &&
                     (!gathers || (found.form.level == Level::gather && geometry.axes == 2 && !found.form.whole));
  if (!knows) decoder.unsupported(statement);
  return found;
}

void texture(Decoder& decoder, const Statement& statement) {
  using Level = TextureForm::Level;
  auto [form, outputs] = parseTexture(decoder, statement);
  const size_t extra = form.level == Level::given ? 1 : form.level == Level::byGradients ? 2 : 0;
  // Optional last operands: integer offsets (a vector, except for one dimension), and a float depth for comparisons.
  const Operand* const offsets = statement.operands.size() == 3 + extra ? &statement.operands.back() : nullptr;
  if (statement.operands.size() != 2 + extra && !offsets) decoder.unsupported(statement);
  if (form.level == Level::byGradients && (form.whole || form.geometry.cube)) decoder.unsupported(statement);
  if (offsets && (offsets->kind != Operand::Kind::vector || form.geometry.cube)) decoder.unsupported(statement);
  const Operand* to = &statement.operands[0];
  std::vector<Value> outs, ins;
  Value resident;
  if (to->kind == Operand::Kind::pair) {
    resident = decoder.target(to->parts[1], 4);
    to = &to->parts[0];
  }
  if (to->kind != Operand::Kind::vector || to->parts.size() != outputs)
    decoder.invalid(statement.line, "a vector of " + std::to_string(outputs) + " registers is needed");
  for (const Operand& part : to->parts) outs.push_back(decoder.target(part, 4));
  if (resident) outs.push_back(resident);
  form.resident = static_cast<bool>(resident);
  const Literal literal = form.whole ? Literal::whole : Literal::f32;
  appendPlace(decoder, statement.operands[1], Type::texref, form.geometry, literal, ins);
  for (size_t i = 0; i < extra; ++i) {
    const size_t count = form.level == Level::given ? 1 : form.geometry.axes;
    appendNumbers(decoder, statement.operands[2 + i], count, literal, ins);
  }
  if (offsets) {
    appendNumbers(decoder, *offsets, form.geometry.axes, Literal::whole, ins);
    form.level = static_cast<Level>(static_cast<uint8_t>(form.level) + static_cast<uint8_t>(Level::baseOffset));
  }
  decoder.build().wide(fetchTexture, outs, ins).imm = std::bit_cast<uint64_t>(form);
}

bool setOutside(SurfaceForm& form, std::string_view part) {
  using Outside = SurfaceForm::Outside;
  if (part != "trap" && part != "clamp" && part != "zero") return false;
  form.outside = part == "trap" ? Outside::trap : part == "clamp" ? Outside::clamp : Outside::zero;
  return true;
}

SurfaceForm parseSurface(Decoder& decoder, const Statement& statement) {
  SurfaceForm form;
  if (statement.parts.size() < 2 || statement.parts[1] != "b") decoder.unsupported(statement);
  for (size_t i = 2; i < statement.parts.size(); ++i) {
    const std::string_view part = statement.parts[i];
    const bool isCacheHint =
        part == "ca" || part == "cg" || part == "cs" || part == "cv" || part == "wb" || part == "wt";
    if (part == "v2" || part == "v4")
      form.elements = part == "v2" ? 2 : 4;
    else if (const auto type = findType(part); type && part[0] == 'b' && part != "b128")
      form.elementBytes = static_cast<uint8_t>(sizeOf(*type));
    else if (!isCacheHint && !setOutside(form, part) && !setGeometry(form.geometry, part))
      decoder.unsupported(statement);
  }
  const bool knows = form.geometry.axes != 0 && !form.geometry.cube && form.elementBytes != 0 &&
                     form.elementBytes <= 8 && form.elements * form.elementBytes <= 16;
  if (!knows) decoder.unsupported(statement);
  return form;
}

std::vector<Operand> elementsOf(Decoder& decoder, const Operand& operand, const SurfaceForm& form) {
  if (form.elements == 1 && operand.kind != Operand::Kind::vector) return {operand};
  if (operand.kind != Operand::Kind::vector || operand.parts.size() != form.elements)
    decoder.invalid(operand.line, "a vector of " + std::to_string(form.elements) + " registers is needed");
  return operand.parts;
}

void surfaceLoad(Decoder& decoder, const Statement& statement) {
  const SurfaceForm form = parseSurface(decoder, statement);
  decoder.operandCount(statement, 2, 2);
  std::vector<Value> outs, ins;
  for (const Operand& part : elementsOf(decoder, statement.operands[0], form))
    outs.push_back(decoder.target(part, form.elementBytes == 8 ? 8 : 4));
  appendPlace(decoder, statement.operands[1], Type::surfref, form.geometry, Literal::whole, ins);
  decoder.build().wide(loadSurface, outs, ins).imm = std::bit_cast<uint64_t>(form);
}

void surfaceStore(Decoder& decoder, const Statement& statement) {
  const SurfaceForm form = parseSurface(decoder, statement);
  decoder.operandCount(statement, 2, 2);
  std::vector<Value> ins;
  appendPlace(decoder, statement.operands[0], Type::surfref, form.geometry, Literal::whole, ins);
  for (const Operand& part : elementsOf(decoder, statement.operands[1], form))
    ins.push_back(decoder.source(part, form.elementBytes == 8 ? 8 : 4));
  decoder.build().wide(storeSurface, {}, ins).imm = std::bit_cast<uint64_t>(form);
}

// sured.b.op.geometry.type.outside [surface, {coordinates}], value
void surfaceReduce(Decoder& decoder, const Statement& statement) {
  if (statement.parts.size() != 6 || statement.parts[1] != "b") decoder.unsupported(statement);
  const auto* const operation = std::ranges::find(bulkReductions, statement.parts[2]);
  const auto* const type = std::ranges::find(bulkTypes, statement.parts[4]);
  SurfaceForm form;
  const bool knows = operation != std::end(bulkReductions) && type != std::end(bulkTypes) &&
                     setGeometry(form.geometry, statement.parts[3]) && !form.geometry.cube &&
                     setOutside(form, statement.parts[5]);
  if (!knows) decoder.unsupported(statement);
  form.reduction = static_cast<uint8_t>(operation - bulkReductions + 1);
  form.type = static_cast<uint8_t>(type - bulkTypes);
  const AtomicRow* const row = findReduction(form.reduction, *type);
  const bool isWhole = (*type)[0] != 'f' && !type->starts_with("bf");
  if (!row || !isWhole || *operation == "inc" || *operation == "dec" || *operation == "xor") decoder.unsupported(statement);
  form.elementBytes = static_cast<uint8_t>(row->bytes);
  decoder.operandCount(statement, 2, 2);
  std::vector<Value> ins;
  appendPlace(decoder, statement.operands[0], Type::surfref, form.geometry, Literal::whole, ins);
  ins.push_back(decoder.source(statement.operands[1], row->bytes));
  decoder.build().wide(reduceSurface, {}, ins).imm = std::bit_cast<uint64_t>(form);
}

constexpr std::string_view queryNames[] = {"width",         "height",
                                           "depth",         "channel_data_type",
                                           "channel_order", "normalized_coords",
                                           "array_size",    "num_mipmap_levels",
                                           "num_samples",   "memory_layout"};

// txq.width.b32 d, [texture]; txq.level.width.b32 d, [texture], level; suq.width.b32 d, [surface]
template <bool Surface>
void query(Decoder& decoder, const Statement& statement) {
  const bool ofLevel = !Surface && statement.has("level");
  const size_t at = ofLevel ? 2 : 1;
  if (statement.parts.size() != at + 2 || statement.last() != "b32") decoder.unsupported(statement);
  const auto* const name = std::ranges::find(queryNames, statement.parts[at]);
  if (name == std::end(queryNames) ||
      (Surface ? *name == "normalized_coords" || name->starts_with("num") : *name == "memory_layout"))
    decoder.unsupported(statement);
  decoder.operandCount(statement, ofLevel ? 3 : 2, ofLevel ? 3 : 2);
  const Operand& operand = statement.operands[1];
  if (operand.kind != Operand::Kind::memory || !operand.parts.empty()) decoder.unsupported(statement);
  const Value level = ofLevel ? decoder.source(statement.operands[2], 4) : decoder.build().constant(4, 0);
  const Value object = objectOf(decoder, operand, Surface ? Type::surfref : Type::texref);
  decoder.build().add(queryImage, {decoder.target(statement.operands[0], 4)}, {object, level}).imm =
      static_cast<uint64_t>(name - queryNames) | uint64_t{Surface} << 8;
}

// istypep.type p, a: whether the register holds the address of a reference of that type. False for an object's handle: for 9.0, ptxas of
// CUDA 13.0 tests for a bit from 2^29 on, and handles are small. Variables of samplers do not exist.
void isType(Decoder& decoder, const Statement& statement) {
  const auto type = statement.parts.size() == 2 ? findType(statement.last()) : std::nullopt;
  if (!type || !isReference(*type)) decoder.unsupported(statement);
  decoder.operandCount(statement, 2, 2);
  if (!decoder.findRegister(statement.operands[1])) decoder.unsupported(statement);
  Builder& build = decoder.build();
  const Value address = decoder.source(statement.operands[1], 8), to = decoder.target(statement.operands[0], 4);
  if (type == Type::samplerref) return build.move(to, build.constant(4, 0));
  build.add(static_cast<Handler>(isReference), {to}, {address}).imm = type == Type::surfref;
}

constexpr DecodeRow decodeRows[] = {{"tex", texture},       {"tld4", texture},        {"suld", surfaceLoad},
                                    {"sust", surfaceStore}, {"sured", surfaceReduce}, {"txq", query<false>},
                                    {"suq", query<true>},   {"istypep", isType}};

}  // namespace

std::span<const DecodeRow> textureDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
