// The name of an object that a session shares or a file that it gives: 16 bytes that nobody can guess (docs/ipc.md).
#pragma once

#include <capnp/blob.h>

#include <algorithm>
#include <array>

#include "vgpu/base/fail.h"

namespace vgpu::daemon {

using SharedName = std::array<kj::byte, 16>;

// Throws kj::Exception if the data is not a name.
inline SharedName sharedNameIn(capnp::Data::Reader data) {
  SharedName name;
  if (data.size() != name.size()) fail("the name of a shared object has 16 bytes");
  std::copy(data.begin(), data.end(), name.begin());
  return name;
}

}  // namespace vgpu::daemon
