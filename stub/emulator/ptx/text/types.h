// PTX's fundamental types.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vgpu::emulator {

enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  f32,
  f64,
  tf32,
  texref,
  samplerref,
  surfref
};

// The type `name`, without its dot; nothing if there is none.
std::optional<Type> findType(std::string_view name);
std::string_view nameOf(Type);
uint32_t sizeOf(Type);  // bytes in memory; 0 for pred
bool isSigned(Type);
bool isFloat(Type);  // f32 and f64: types whose literals may have a point
bool isReference(Type);  // texref, samplerref and surfref

// Bytes of a register of this type for one lane: 4, 8 or 16.
uint32_t registerBytes(Type);

}  // namespace vgpu::emulator
