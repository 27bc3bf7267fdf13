// Bytes of an image, looked at as what lies in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace vgpu::stub {

using Bytes = std::span<const std::byte>;

// The value at `offset`, which the caller has checked to be inside.
template <typename T>
T read(Bytes bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

inline const char* charactersOf(Bytes bytes) { return static_cast<const char*>(static_cast<const void*>(bytes.data())); }
inline std::string_view textOf(Bytes bytes) { return {charactersOf(bytes), bytes.size()}; }

}  // namespace vgpu::stub
