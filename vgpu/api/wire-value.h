// CUDA's C types on the wire: handles and pointers as 64-bit numbers, enums as their underlying type.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace vgpu {

template <typename T>
constexpr auto toWire(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return std::bit_cast<uint64_t>(value);
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<std::underlying_type_t<T>>(value);
  } else {
    return value;
  }
}

template <typename T, typename W>
constexpr T fromWire(W value) {
  if constexpr (std::is_pointer_v<T>) {
    return std::bit_cast<T>(static_cast<uint64_t>(value));
  } else {
    return static_cast<T>(value);
  }
}

// Whether `value` is one of an enumeration whose values are `first` to `last`.
template <typename Enumeration>
constexpr bool isWithin(Enumeration value, int64_t first, int64_t last) {
  auto number = static_cast<int64_t>(static_cast<std::underlying_type_t<Enumeration>>(value));
  return number >= first && number <= last;
}

}  // namespace vgpu
