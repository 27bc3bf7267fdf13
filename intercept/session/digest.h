// Digests of what calls are given, made by adding words.
#pragma once

#include <cstdint>

namespace vgpu::client {

// Two rounds of multiplication and folding (the finalizer of MurmurHash3) leave no bit unmixed.
constexpr uint64_t mixed(uint64_t digest, uint64_t word) {
  digest ^= word + 0x9e3779b97f4a7c15;
  digest = (digest ^ digest >> 33) * 0xff51afd7ed558ccd;
  digest = (digest ^ digest >> 33) * 0xc4ceb9fe1a85ec53;
  return digest ^ digest >> 33;
}

}  // namespace vgpu::client
