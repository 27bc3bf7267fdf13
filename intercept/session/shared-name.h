// The name of an object that the session shares with other processes: 16 random bytes that nobody can guess (docs/ipc.md).
#pragma once

#include <compare>
#include <cstdint>

namespace vgpu::client {

struct SharedName {
  uint64_t first = 0, second = 0;
  // A new name. Throws kj::Exception if the system provides no random bytes.
  static SharedName make();
  auto operator<=>(const SharedName&) const = default;
};

// Sets the name in a frame.
template <typename Frame>
void setName(Frame& frame, const SharedName& name) {
  frame->setFirst(name.first);
  frame->setSecond(name.second);
}

}  // namespace vgpu::client
