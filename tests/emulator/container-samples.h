// Fatbinaries as the toolkit makes them, built here so that the tests need no files.
#pragma once

#include <lz4.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace vgpu::test {

enum class Packing { plain, lz4, zstd };

template <class Value>
void append(std::string& bytes, Value value) {
  bytes.append(static_cast<const char*>(static_cast<const void*>(&value)), sizeof value);
}

// One member: a header of 64 bytes and the payload (docs/fatbinary.md).
inline std::string member(uint16_t kind, uint32_t architecture, std::string_view text, Packing packing,
                          uint64_t moreFlags = 0) {
  std::string payload(text);
  uint64_t flags = 0x11 | moreFlags;
  if (packing == Packing::lz4) {
    payload.resize(static_cast<size_t>(LZ4_compressBound(static_cast<int>(text.size()))));
    payload.resize(static_cast<size_t>(LZ4_compress_default(text.data(), payload.data(), static_cast<int>(text.size()),
                                                            static_cast<int>(payload.size()))));
    flags |= 0x2000;
  } else if (packing == Packing::zstd) {
    payload.resize(ZSTD_compressBound(text.size()));
    payload.resize(ZSTD_compress(payload.data(), payload.size(), text.data(), text.size(), 3));
    flags |= 0x8000;
  }
  auto stored = static_cast<uint32_t>(payload.size());
  payload.resize((payload.size() + 7) / 8 * 8, '\0');
  std::string bytes;
  append(bytes, kind);
  append<uint16_t>(bytes, 0x101);
  append<uint32_t>(bytes, 64);
  append<uint64_t>(bytes, payload.size());
  append<uint32_t>(bytes, packing == Packing::plain ? 0 : stored);
  append<uint32_t>(bytes, 0);
  append<uint32_t>(bytes, 9 << 16);
  append<uint32_t>(bytes, architecture);
  append<uint64_t>(bytes, 0);
  append<uint64_t>(bytes, flags);
  append<uint64_t>(bytes, 0);
  append<uint64_t>(bytes, packing == Packing::plain ? 0 : text.size());
  return bytes + payload;
}

inline std::string fatbinary(const std::string& members) {
  std::string bytes;
  append<uint32_t>(bytes, 0xba55ed50);
  append<uint16_t>(bytes, 1);
  append<uint16_t>(bytes, 16);
  append<uint64_t>(bytes, members.size());
  return bytes + members;
}

}  // namespace vgpu::test
