// Reserves the name of a snapshot that a process has chosen and not used yet. It is a lock as packs have (pack-leases.h), on a byte that a
// digest of the name selects, beyond those of all packs, so the system releases it when the process ends for whatever reason. If two names
// have the same byte, one only waits for the other.
#pragma once

#include <string>

#include "vgpu/store/pack-leases.h"

namespace vgpu {

class NameLease {
 public:
  // `store` must exist. Throws kj::Exception as PackLeases does.
  NameLease(const std::string& store, const std::string& name);

  // Waits while another process frees the name. Several processes may hold it: the name belongs to the one that makes its directory.
  void hold() { leases.await(byte); }
  // Returns false, at once, if another process holds the name. Released with this object, as after hold().
  bool takeToFree() { return leases.takeAlone(byte); }

 private:
  PackLeases leases;
  uint64_t byte;
};

}  // namespace vgpu
