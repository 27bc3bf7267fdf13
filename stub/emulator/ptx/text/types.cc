#include "stub/emulator/ptx/text/types.h"

#include <array>

namespace vgpu::emulator {
namespace {

struct TypeRow {
  std::string_view name;
  uint32_t bytes;
};

// In the order of Type.
constexpr std::array<TypeRow, 25> typeRows{{
    {"", 0},     {"pred", 0},   {"b8", 1},         {"b16", 2},     {"b32", 4},    {"b64", 8}, {"b128", 16},
    {"u8", 1},   {"u16", 2},    {"u32", 4},        {"u64", 8},     {"s8", 1},     {"s16", 2}, {"s32", 4},
    {"s64", 8},  {"f16", 2},    {"f16x2", 4},      {"bf16", 2},    {"bf16x2", 4}, {"f32", 4}, {"f64", 8},
    {"tf32", 4}, {"texref", 8}, {"samplerref", 8}, {"surfref", 8},
}};

const TypeRow& rowOf(Type type) { return typeRows[static_cast<size_t>(type)]; }

}  // namespace

std::optional<Type> findType(std::string_view name) {
  for (size_t i = 1; i < typeRows.size(); ++i)
    if (typeRows[i].name == name) return static_cast<Type>(i);
  return std::nullopt;
}

std::string_view nameOf(Type type) { return rowOf(type).name; }
uint32_t sizeOf(Type type) { return rowOf(type).bytes; }
bool isSigned(Type type) { return type >= Type::s8 && type <= Type::s64; }
bool isFloat(Type type) { return type == Type::f32 || type == Type::f64; }
bool isReference(Type type) { return type >= Type::texref && type <= Type::surfref; }

uint32_t registerBytes(Type type) {
  const uint32_t bytes = sizeOf(type);
  return bytes <= 4 ? 4 : bytes;
}

}  // namespace vgpu::emulator
