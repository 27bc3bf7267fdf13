// The lanes beside a program: each is a thread, which connects with the node first.
#pragma once

#include "tools/relay/lane.h"
#include "vgpu/control/endpoint.h"
#include "vgpu/control/greeting.h"

namespace vgpu::relay {

// How many further connections a session has, and from how many bytes of large messages on. VGPU_LINK_CONNECTIONS says how many,
// from the beginning; else they are by how many cores there are, and a session that moves little has none: each is a process of
// the node.
struct LaneWish {
  unsigned count;
  uint64_t from;
};
LaneWish laneWish();

// The thread has all that it uses, and ends when the other end of `relay` is shut down; if it is connecting then, some seconds
// later. Throws kj::Exception.
void startLane(kj::AutoCloseFd relay, const MemoryFile& segment, const Endpoint& node, const Greeting& greeting);

}  // namespace vgpu::relay
