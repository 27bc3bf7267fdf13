// Digests of what calls are given, made by adding words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

namespace vgpu::client {

// Two rounds of multiplication and folding (the finalizer of MurmurHash3) leave no bit unmixed.
constexpr uint64_t mixed(uint64_t digest, uint64_t word) {
  digest ^= word + 0x9e3779b97f4a7c15;
  digest = (digest ^ digest >> 33) * 0xff51afd7ed558ccd;
  digest = (digest ^ digest >> 33) * 0xc4ceb9fe1a85ec53;
  return digest ^ digest >> 33;
}

// Words of eight bytes, the last filled with zeros; of each counts what `valueOf` makes of it.
template <typename ValueOf = std::identity>
uint64_t mixedBytes(uint64_t digest, std::span<const std::byte> bytes, ValueOf valueOf = {}) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    digest = mixed(digest, valueOf(word));
  }
  return digest;
}

}  // namespace vgpu::client
