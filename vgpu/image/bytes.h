// Values out of bytes that somebody else has written, and the sizes that nothing here goes beyond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace vgpu::image {

using Bytes = std::span<const std::byte>;

// Of an image. Whoever loads one gives an address and no size, so a size that the image claims is all that bounds the
// reading; one above this is taken for damage. A worker takes no larger one either (docs/ring.md).
constexpr uint64_t mostImageBytes = uint64_t{4} << 30;
// Of a member of a fatbinary, decompressed: memory for it is taken because its header says so. Real ones are some tens
// of MiB, the largest that are known some hundreds.
constexpr uint64_t mostPlainBytes = uint64_t{1} << 30;

inline bool isInside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

// The value at `offset`, which the caller has checked to be inside.
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
