// Loads, stores, atomics, prefetches.
#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/decode/linker.h"
#include "stub/emulator/ptx/run/access.h"

namespace vgpu::emulator {

void decodeTransaction(Decoder&, const Statement&, const Operand& memory, uint32_t bytes);

namespace {

// A memory instruction's modifiers. Cache hints have no observable effect; every scope is treated as the widest.
struct Modifiers {
  AddressKind kind = AddressKind::generic;
  bool isParam = false, ordered = false, orders = false;
  bool completes = false;  // st.async, red.async: adds transactions to a barrier, which is the last operand
  uint32_t elements = 1;
  Type type = Type::none;
  std::string operation;  // of atom and red
};

bool isHint(std::string_view part) {
  for (std::string_view known : {"weak",
                                 "cta",
                                 "cluster",
                                 "gpu",
                                 "sys",
                                 "ca",
                                 "cg",
                                 "cs",
                                 "lu",
                                 "cv",
                                 "wb",
                                 "wt",
                                 "nc",
                                 "noftz",
                                 "uni",
                                 "L1::evict_normal",
                                 "L1::evict_unchanged",
                                 "L1::evict_first",
                                 "L1::evict_last",
                                 "L1::no_allocate",
                                 "L2::cache_hint",
                                 "L2::64B",
                                 "L2::128B",
                                 "L2::256B",
                                 "L2::evict_last",
                                 "L2::evict_normal",
                                 "L2::evict_first",
                                 "async",
                                 "mbarrier::complete_tx::bytes"})
    if (part == known) return true;
  return false;
}

bool isOrder(std::string_view part) {
  for (std::string_view known : {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
    if (part == known) return true;
  return false;
}

bool setSpace(Modifiers& found, std::string_view part) {
  if (part == "global" || part == "const")
    found.kind = AddressKind::generic;
  else if (part.starts_with("shared"))
    found.kind = AddressKind::shared;
  else if (part == "local")
    found.kind = AddressKind::local;
  else if (part == "param" || part == "param::entry" || part == "param::func")
    found.kind = AddressKind::param, found.isParam = true;
  else
    return false;
  return true;
}

Modifiers parse(Decoder& decoder, const Statement& statement) {
  Modifiers found;
  for (size_t i = 1; i < statement.parts.size(); ++i) {
    const std::string_view part = statement.parts[i];
    if (setSpace(found, part) || isHint(part)) continue;
    if (isOrder(part))
      found.ordered = true, found.orders |= part != "volatile" && part != "relaxed";
    else if (part == "v2" || part == "v4" || part == "v8")
      found.elements = static_cast<uint32_t>(part[1] - '0');
    else if (const auto type = findType(part))
      found.type = *type;
    else if (statement.parts[0] != "ld" && statement.parts[0] != "st" && found.operation.empty())
      found.operation = part;
    else
      decoder.unsupported(statement);
  }
  if (found.type == Type::none || found.type == Type::pred) decoder.unsupported(statement);
  found.completes = statement.has("mbarrier::complete_tx::bytes");
  if (found.completes != statement.has("async") || (found.completes && statement.operands.size() != 3))
    decoder.unsupported(statement);
  return found;
}

std::vector<Operand> elementsOf(Decoder& decoder, const Operand& operand, uint32_t count) {
  if (count == 1 && operand.kind != Operand::Kind::vector) return {operand};
  if (operand.kind != Operand::Kind::vector || operand.parts.size() != count)
    decoder.invalid(operand.line, "a vector of " + std::to_string(count) + " operands is needed");
  return operand.parts;
}

// A 32-bit register holds an offset in shared memory; other registers are extended to 64 bits.
Decoder::Address addressOf(Decoder& decoder, const Operand& operand, AddressKind& kind) {
  Decoder::Address address = decoder.address(operand);
  if (address.base.bytes == 8) return address;
  if (address.base.bytes != 4) decoder.invalid(operand.line, "a register of 128 bits as an address");
  if (kind == AddressKind::shared) {
    kind = AddressKind::shared32;
    return address;
  }
  const Value wide = decoder.build().reg(8);
  decoder.build().lane("extend.u32", wide, {address.base});
  address.base = wide;
  return address;
}

const Symbol* parameterOf(Decoder& decoder, const Operand& memory) {
  if (memory.kind != Operand::Kind::memory || memory.name.empty()) return nullptr;
  const Symbol* symbol = decoder.find(memory.name);
  const bool is = symbol && (symbol->kind == Symbol::Kind::parameter || symbol->kind == Symbol::Kind::kernelParameter);
  return is ? symbol : nullptr;
}

void loadKernelParameter(Decoder& decoder, const Statement& statement, const Symbol& symbol, const Modifiers& form,
                         const std::vector<Operand>& to) {
  const uint32_t size = sizeOf(form.type);
  const int64_t offset = statement.operands[1].offset;
  if (offset < 0 || static_cast<uint64_t>(offset) + uint64_t{size} * form.elements > symbol.bytes)
    decoder.invalid(statement.line,
                    "a read past the end of parameter '" + std::string(statement.operands[1].name) + "'");
  for (uint32_t i = 0; i < form.elements; ++i) {
    const Value target = decoder.target(to[i], registerBytes(form.type), isSigned(form.type));
    const Handler handler = findParameterLoad(size, isSigned(form.type), target.bytes);
    if (!handler) decoder.unsupported(statement);
    decoder.build().add(handler, {target}, {}).imm = symbol.offset + static_cast<uint64_t>(offset) + uint64_t{size} * i;
  }
}

void load(Decoder& decoder, const Statement& statement) {
  // The optional third operand is a cache policy.
  decoder.operandCount(statement, 2, 3);
  Modifiers form = parse(decoder, statement);
  const std::vector<Operand> to = elementsOf(decoder, statement.operands[0], form.elements);
  const uint32_t size = sizeOf(form.type);
  if (form.isParam) {
    if (const Symbol* symbol = parameterOf(decoder, statement.operands[1])) {
      if (symbol->kind == Symbol::Kind::kernelParameter)
        return loadKernelParameter(decoder, statement, *symbol, form, to);
      const Symbol parameter = *symbol;
      for (uint32_t i = 0; i < form.elements; ++i)
        decodeParameterLoad(decoder, statement, parameter, form.type, to[i],
                            statement.operands[1].offset + int64_t{size} * i);
      return;
    }
    if (!decoder.decl().isKernel) form.kind = AddressKind::local;  // a parameter of a device function: see copyParameter()
  }
  if (size * form.elements > 32) decoder.unsupported(statement);
  const Decoder::Address address = addressOf(decoder, statement.operands[1], form.kind);
  std::vector<Value> targets;
  for (const Operand& operand : to)
    targets.push_back(decoder.target(operand, registerBytes(form.type), isSigned(form.type)));
  const Handler handler = findLoad(size, isSigned(form.type), targets[0].bytes, form.ordered);
  if (!handler || targets.size() > 5) decoder.unsupported(statement);
  IrInst& inst = decoder.build().add(handler, {}, {});
  for (const Value& target : targets) inst.op[inst.ops++] = target;
  inst.outs = inst.ops;
  inst.op[inst.ops++] = address.base;
  inst.imm = address.offset;
  inst.form = AccessForm{form.kind, static_cast<uint8_t>(form.elements), inst.outs}.bits();
}

void store(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 2, 3);
  Modifiers form = parse(decoder, statement);
  const std::vector<Operand> from = elementsOf(decoder, statement.operands[1], form.elements);
  const uint32_t size = sizeOf(form.type);
  if (form.isParam) {
    const Symbol* symbol = parameterOf(decoder, statement.operands[0]);
    if (!symbol || symbol->kind != Symbol::Kind::parameter) decoder.unsupported(statement);
    const Symbol parameter = *symbol;
    for (uint32_t i = 0; i < form.elements; ++i)
      decodeParameterStore(decoder, statement, parameter, form.type, from[i],
                           statement.operands[0].offset + int64_t{size} * i);
    return;
  }
  const Decoder::Address address = addressOf(decoder, statement.operands[0], form.kind);
  std::vector<Value> values;
  const Literal literal = form.type == Type::f32   ? Literal::f32
                          : form.type == Type::f64 ? Literal::f64
                                                   : Literal::whole;
  for (const Operand& operand : from) values.push_back(decoder.source(operand, registerBytes(form.type), literal));
  const Handler handler = findStore(size, values[0].bytes, form.ordered);
  if (!handler || values.size() > 5) decoder.unsupported(statement);
  IrInst& inst = decoder.build().add(handler, {}, {address.base});
  for (const Value& value : values) inst.op[inst.ops++] = value;
  inst.imm = address.offset;
  inst.form = AccessForm{form.kind, static_cast<uint8_t>(form.elements), 0}.bits();
  if (form.completes) decodeTransaction(decoder, statement, statement.operands[2], size * form.elements);
}

// Adds one atomic instruction; `values` are its operands after the address.
void emitAtomic(Decoder& decoder, const Statement& statement, const Modifiers& form, Value out,
                const Decoder::Address& address, const std::vector<Value>& values) {
  const AtomicRow* row = findAtomic(form.operation + "." + std::string(nameOf(form.type)));
  if (!row || row->inputs != values.size()) decoder.unsupported(statement);
  IrInst& inst = decoder.build().add(row->handler, {out}, {address.base});
  for (const Value& value : values) inst.op[inst.ops++] = value;
  inst.imm = address.offset;
  inst.form = AccessForm{form.kind, 1, 1, form.orders}.bits();
}

template <bool Returns>
void atomic(Decoder& decoder, const Statement& statement) {
  Modifiers form = parse(decoder, statement);
  if (form.kind == AddressKind::local || form.kind == AddressKind::param) decoder.unsupported(statement);
  const size_t first = Returns ? 1 : 0;
  decoder.operandCount(statement, first + 2, first + 4);
  const uint32_t bytes = registerBytes(form.type);
  const Literal literal = form.type == Type::f32   ? Literal::f32
                          : form.type == Type::f64 ? Literal::f64
                                                   : Literal::whole;
  const size_t inputs = form.operation == "cas" ? 2 : 1;
  if (statement.operands.size() < first + 1 + inputs) decoder.operandCount(statement, first + 1 + inputs, first + 4);
  Decoder::Address address = addressOf(decoder, statement.operands[first], form.kind);
  const std::vector<Operand> from = elementsOf(decoder, statement.operands[first + 1], form.elements);
  const std::vector<Operand> to =
      Returns ? elementsOf(decoder, statement.operands[0], form.elements) : std::vector<Operand>();
  // A vector is atomic element by element (PTX ISA, atom with .v2, .v4, .v8).
  for (uint32_t i = 0; i < form.elements; ++i) {
    std::vector<Value> values{decoder.source(from[i], bytes, literal)};
    if (inputs == 2) values.push_back(decoder.source(statement.operands[first + 2], bytes, literal));
    const Value out = Returns ? decoder.target(to[i], bytes) : decoder.build().reg(bytes);
    emitAtomic(decoder, statement, form, out, address, values);
    address.offset += sizeOf(form.type);
  }
  if (form.completes) decodeTransaction(decoder, statement, statement.operands[2], sizeOf(form.type) * form.elements);
}

void ignore(Decoder&, const Statement&) {}

// createpolicy: cache policies have no observable effect except their own bits, which are unspecified.
void makePolicy(Decoder& decoder, const Statement& statement) {
  decoder.operandCount(statement, 1, 4);
  decoder.build().move(decoder.target(statement.operands[0], 8), decoder.build().constant(8, 0));
}

void orders(Decoder& decoder, const Statement&) { decoder.build().add(fence, {}, {}); }

constexpr DecodeRow decodeRows[] = {
    {"ld", load},           {"ldu", load},          {"st", store},
    {"atom", atomic<true>}, {"red", atomic<false>}, {"prefetch", ignore},
    {"prefetchu", ignore},  {"discard", ignore},    {"applypriority", ignore},
    {"membar", orders},     {"fence", orders},      {"createpolicy", makePolicy},
};

}  // namespace

std::span<const DecodeRow> memoryDecodes() { return decodeRows; }

}  // namespace vgpu::emulator
