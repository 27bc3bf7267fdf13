// Parameters of device functions. A parameter is a row of 4-byte lanes, so that a call copies whole rows and needs no
// memory; what is accessed is known from the text alone.
#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {
namespace {

constexpr uint32_t rowBytes = 4 * laneCount;

uint32_t checked(Decoder& decoder, const Statement& statement, const Symbol& symbol, Type type, int64_t offset) {
  const uint32_t size = sizeOf(type);
  if (offset < 0 || static_cast<uint64_t>(offset) + size > (symbol.bytes + 3) / 4 * 4)
    decoder.invalid(statement.line, "an access past the end of a parameter");
  if (static_cast<uint64_t>(offset) % std::min(size, 4u))
    decoder.unsupported(statement.line, "a misaligned access to a parameter");
  return static_cast<uint32_t>(offset);
}

Value word(Decoder& decoder, const Symbol& symbol, uint32_t offset) {
  return decoder.build().fixed(static_cast<uint32_t>(symbol.offset) + offset / 4 * rowBytes, 4);
}

}  // namespace

void decodeParameterLoad(Decoder& decoder, const Statement& statement, const Symbol& symbol, Type type,
                         const Operand& to, int64_t at) {
  const uint32_t offset = checked(decoder, statement, symbol, type, at), size = sizeOf(type);
  Builder& build = decoder.build();
  const Value low = word(decoder, symbol, offset);
  const Value target = decoder.target(to, registerBytes(type), isSigned(type));
  if (size == 4) return build.move(target, low);
  if (size < 4) {
    build.lane(isSigned(type) ? "bfe.s32" : "bfe.u32", target,
               {low, build.constant(4, offset % 4 * 8), build.constant(4, size * 8)});
    return;
  }
  if (size == 8) return build.lane("pack.b64", target, {low, word(decoder, symbol, offset + 4)});
  const Value halves[] = {build.reg(8), build.reg(8)};
  build.lane("pack.b64", halves[0], {low, word(decoder, symbol, offset + 4)});
  build.lane("pack.b64", halves[1], {word(decoder, symbol, offset + 8), word(decoder, symbol, offset + 12)});
  build.lane("pack.b128", target, {halves[0], halves[1]});
}

void decodeParameterStore(Decoder& decoder, const Statement& statement, const Symbol& symbol, Type type,
                          const Operand& from, int64_t at) {
  const uint32_t offset = checked(decoder, statement, symbol, type, at), size = sizeOf(type);
  Builder& build = decoder.build();
  const Literal literal = type == Type::f32 ? Literal::f32 : type == Type::f64 ? Literal::f64 : Literal::whole;
  const Value value = decoder.source(from, registerBytes(type), literal);
  const Value low = word(decoder, symbol, offset);
  const auto storeWide = [&](Value wide, uint32_t begin) {
    build.lane("lo.b64", word(decoder, symbol, begin), {wide});
    build.lane("hi.b64", word(decoder, symbol, begin + 4), {wide});
  };
  if (size == 4) return build.move(low, value);
  if (size == 8) return storeWide(value, offset);
  if (size < 4) {
    build.lane("bfi.b32", low, {value, low, build.constant(4, offset % 4 * 8), build.constant(4, size * 8)});
    return;
  }
  const Value halves[] = {build.reg(8), build.reg(8)};
  build.lane("lo.b128", halves[0], {value});
  build.lane("hi.b128", halves[1], {value});
  storeWide(halves[0], offset);
  storeWide(halves[1], offset + 8);
}

}  // namespace vgpu::emulator
