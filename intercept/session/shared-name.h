// The name of what the session shares with other processes: 16 random bytes that nobody can guess (docs/ipc.md).
#pragma once

#include <compare>
#include <cstdint>

namespace vgpu::client {

struct SharedName {
  uint64_t first = 0, second = 0;
  // A new one. Throws kj::Exception if the system gives no random bytes.
  static SharedName make();
  auto operator<=>(const SharedName&) const = default;
};

// In the frame of a call that names it.
template <typename Frame>
void setName(Frame& frame, const SharedName& name) {
  frame->setFirst(name.first);
  frame->setSecond(name.second);
}

}  // namespace vgpu::client
