// Digests of calls' inputs, computed word by word.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

namespace vgpu::client {

// Folds the 128-bit product of two 64-bit numbers: every bit of the result depends on every input bit.
constexpr uint64_t mixed(uint64_t digest, uint64_t word) {
  using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(digest ^ (word + 0x9e3779b97f4a7c15)) * 0xff51afd7ed558ccd;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Adds words of eight bytes, the last padded with zeros, each as converted by `valueOf`.
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
