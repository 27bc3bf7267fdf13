// Reading values from untrusted bytes, and the largest sizes that the readers accept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace vgpu::image {

using Bytes = std::span<const std::byte>;

// Limit for an image. CUDA gets only its address, so the size in its header alone bounds reading; a larger size counts as damage. A worker
// accepts no larger image either (docs/ring.md).
constexpr uint64_t mostImageBytes = uint64_t{4} << 30;
// Limit for a decompressed member of a fatbinary, because its header alone decides how much memory is allocated. Real ones have some tens
// of MiB, the largest known some hundreds.
constexpr uint64_t mostPlainBytes = uint64_t{1} << 30;

inline bool isInside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

// The value at `offset`, which the caller has checked to be within `bytes`.
template <typename T>
T read(Bytes bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

inline std::string_view textOf(Bytes bytes) {
  return {static_cast<const char*>(static_cast<const void*>(bytes.data())), bytes.size()};
}

}  // namespace vgpu::image
