#include "vgpu/store/name-lease.h"

namespace vgpu {

namespace {

constexpr uint64_t firstByte = uint64_t{1} << 62;  // numbers of packs are below

// FNV-1a, 64 bits (RFC 9923).
uint64_t digestOf(const std::string& name) {
  uint64_t digest = 0xcbf29ce484222325;
  for (unsigned char letter : name) digest = (digest ^ letter) * 0x100000001b3;
  return digest;
}

}  // namespace

NameLease::NameLease(const std::string& store, const std::string& name)
    : leases(store + "/leases", false), byte(firstByte + digestOf(name) % firstByte) {}

}  // namespace vgpu
