// The name of a snapshot that somebody has chosen and not used yet: held as packs are (pack-leases.h), by a byte behind those of
// all packs that a digest of the name says, so it is free again when its process has ended, however that ends. Two names that
// have the same byte wait for each other, no more.
#pragma once

#include <string>

#include "vgpu/store/pack-leases.h"

namespace vgpu {

class NameLease {
 public:
  // Of a store that is there. Throws kj::Exception as PackLeases does.
  NameLease(const std::string& store, const std::string& name);

  // Waits while the name is being freed. Others may hold it too: who makes its directory has it.
  void hold() { leases.await(byte); }
  // False, at once, if somebody holds it. Ends with this object, as hold() does.
  bool takeToFree() { return leases.takeAlone(byte); }

 private:
  PackLeases leases;
  uint64_t byte;
};

}  // namespace vgpu
