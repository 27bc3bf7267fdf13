// Converts operands to values: registers, literals, addresses of variables, special registers.
#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/decode/linker.h"
#include "stub/emulator/ptx/run/handlers.h"
#include "stub/emulator/ptx/run/special.h"
#include "stub/emulator/ptx/text/number.h"

namespace vgpu::emulator {

const Symbol* Decoder::findRegister(const Operand& operand) {
  if (operand.kind != Operand::Kind::name) return nullptr;
  const Symbol* symbol = find(operand.name);
  return symbol && symbol->kind == Symbol::Kind::reg ? symbol : nullptr;
}

uint32_t Decoder::operandCount(const Statement& statement, size_t least, size_t most) {
  const size_t count = statement.operands.size();
  if (count < least || count > most)
    invalid(statement.line, "'" + std::string(statement.opcode) + "' with " + std::to_string(count) + " operands");
  return static_cast<uint32_t>(count);
}

// Of a wider register the low bytes are used, as ld, st and cvt allow.
Value Decoder::fit(Value value, uint32_t bytes, int line) {
  if (value.bytes == bytes) return value;
  if (value.bytes < bytes)
    invalid(line, "a register of " + std::to_string(value.bytes * 8) + " bits where " + std::to_string(bytes * 8) +
                      " are needed");
  const Value narrow = builder.reg(value.bytes / 2);
  builder.lane(value.bytes == 16 ? "lo.b128" : "lo.b64", narrow, {value});
  return fit(narrow, bytes, line);
}

Value Decoder::literalValue(const Operand& operand, uint32_t bytes, Literal literal) {
  if (literal == Literal::predicate) return builder.constant(4, operand.whole ? ~uint64_t{0} : 0);
  if (operand.isFloat) {
    const bool asDouble = bytes == 8;
    if (asDouble) return builder.constant(8, doubleBits(operand.token) ^ (uint64_t{operand.minus} << 63));
    return builder.constant(bytes, floatBits(operand.token) ^ (uint32_t{operand.minus} << 31));
  }
  // An integer literal for a float operand is converted to its value.
  if (literal == Literal::f32)
    return builder.constant(4, __builtin_bit_cast(uint32_t, static_cast<float>(static_cast<int64_t>(operand.whole))));
  if (literal == Literal::f64)
    return builder.constant(8, __builtin_bit_cast(uint64_t, static_cast<double>(static_cast<int64_t>(operand.whole))));
  return builder.constant(bytes, operand.whole,
                          bytes == 16 && static_cast<int64_t>(operand.whole) < 0 ? ~uint64_t{0} : 0);
}

Value Decoder::source(const Operand& operand, uint32_t bytes, Literal literal) {
  if (operand.kind == Operand::Kind::number) return literalValue(operand, bytes, literal);
  if (operand.kind != Operand::Kind::name) invalid(operand.line, "an operand of another kind is needed here");
  if (operand.minus) invalid(operand.line, "a register with a minus sign");
  if (operand.negated) {
    const Value negated = builder.reg(4);
    Operand plain = operand;
    plain.negated = false;
    builder.lane("not.b32", negated, {source(plain, 4, literal)});
    return negated;
  }
  if (const Symbol* symbol = find(operand.name)) {
    if (symbol->kind == Symbol::Kind::reg) {
      if (operand.offset) invalid(operand.line, "a register with an offset outside an address");
      return fit(symbol->value, bytes, operand.line);
    }
    return addressOf(*symbol, operand.offset, bytes, operand.line);
  }
  if (const Value special = readSpecial(*this, operand.name))
    return special.bytes < bytes ? widenSpecial(*this, special) : fit(special, bytes, operand.line);
  if (const auto symbol = findGlobal(operand.name)) return addressOf(*symbol, operand.offset, bytes, operand.line);
  invalid(operand.line, "'" + std::string(operand.name) + "' is not declared");
}

// Module-level names: variables and functions.
std::optional<Symbol> Decoder::findGlobal(std::string_view name) {
  if (const VariableDecl* variable = kernelLinker.findVariable(name)) {
    Symbol symbol{Symbol::Kind::address, variable->type};
    symbol.space = variable->space;
    if (variable->space == Space::shared) {
      symbol.kind = variable->unsizedArray || variable->isExtern ? Symbol::Kind::dynamicShared : Symbol::Kind::shared;
      if (symbol.kind == Symbol::Kind::dynamicShared)
        kernelLinker.noteDynamicShared(variable->align);
      else
        symbol.offset = kernelLinker.sharedOffset(variable->name, variable->bytes, variable->align);
    } else if (variable->space == Space::global || variable->space == Space::constant) {
      symbol.offset = kernelLinker.variableAddress(name);
    } else {
      return std::nullopt;
    }
    return symbol;
  }
  if (const FunctionDecl* function = kernelLinker.findFunction(name)) {
    if (!function->hasBody) return std::nullopt;
    Symbol symbol{Symbol::Kind::function};
    symbol.offset = kernelLinker.functionAddress(*function);
    kernelLinker.noteAddress(*function);
    return symbol;
  }
  return std::nullopt;
}

Value Decoder::addressOf(const Symbol& symbol, int64_t offset, uint32_t bytes, int line) {
  const uint64_t plus = symbol.offset + static_cast<uint64_t>(offset);
  switch (symbol.kind) {
    case Symbol::Kind::shared:
    case Symbol::Kind::address:
    case Symbol::Kind::function:
    case Symbol::Kind::kernelParameter:
      return builder.constant(bytes, plus);
    case Symbol::Kind::dynamicShared:
      return builder.dynamicShared(bytes, plus);
    case Symbol::Kind::local: {
      const Value address = builder.reg(8);
      builder.add(localAddress, {address}, {}).imm = plus;
      return fit(address, bytes, line);
    }
    case Symbol::Kind::parameter:
      if (symbol.local) {
        Symbol copy = symbol;
        copy.kind = Symbol::Kind::local;
        copy.offset = *symbol.local;
        return addressOf(copy, offset, bytes, line);
      }
      [[fallthrough]];
    default:
      unsupported(line, "taking the address of this parameter");
  }
}

Decoder::Address Decoder::address(const Operand& operand) {
  if (operand.kind != Operand::Kind::memory) invalid(operand.line, "an address in brackets is needed here");
  if (operand.name.empty()) return {builder.constant(8, static_cast<uint64_t>(operand.offset)), 0};
  Operand base = operand;
  base.kind = Operand::Kind::name;
  base.offset = 0;
  if (const Symbol* symbol = findRegister(base)) return {symbol->value, static_cast<uint64_t>(operand.offset)};
  return {source(base, 8), static_cast<uint64_t>(operand.offset)};
}

Value Decoder::genericAddress(const Operand& operand, bool shared) {
  auto [base, offset] = address(operand);
  if (base.bytes == 4) {
    const Value wide = builder.reg(8);
    builder.lane("extend.u32", wide, {base});
    base = wide;
  }
  const Value sum = builder.reg(8);
  builder.lane("add.u64", sum, {base, builder.constant(8, offset)});
  if (!shared) return sum;
  const Value generic = builder.reg(8);
  builder.lane("or.b64", generic, {sum, builder.constant(8, sharedWindow)});
  return generic;
}

Value Decoder::predicate(const Operand& operand) { return source(operand, 4, Literal::predicate); }

Value Decoder::target(const Operand& operand, uint32_t bytes, bool isSigned) {
  if (operand.kind != Operand::Kind::name || operand.minus) invalid(operand.line, "a register is needed here");
  if (operand.name == "_") return builder.reg(bytes);
  const Symbol* symbol = findRegister(operand);
  if (!symbol) invalid(operand.line, "'" + std::string(operand.name) + "' is not a register");
  if (symbol->value.bytes == bytes) return symbol->value;
  if (symbol->value.bytes < bytes)
    invalid(operand.line,
            "'" + std::string(operand.name) + "' is too narrow for a result of " + std::to_string(bytes * 8) + " bits");
  const Value narrow = builder.reg(bytes);
  extensions.push_back({symbol->value, narrow, isSigned});
  return narrow;
}

void Decoder::extend(const Extension& extension) {
  Value from = extension.from;
  if (from.bytes == 4) {
    const Value wide = extension.to.bytes == 8 ? extension.to : builder.reg(8);
    builder.lane(extension.isSigned ? "extend.s32" : "extend.u32", wide, {from});
    from = wide;
  }
  if (extension.to.bytes == 16) builder.lane("pack.b128", extension.to, {from, builder.constant(8, 0)});
}

}  // namespace vgpu::emulator
