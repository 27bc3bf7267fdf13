// The lanes on the program's side: each is a thread, which first connects to the node.
#pragma once

#include "tools/relay/lane.h"
#include "vgpu/control/endpoint.h"
#include "vgpu/control/greeting.h"

namespace vgpu::relay {

// How many additional connections a session gets, and after how many bytes of large messages. VGPU_LINK_CONNECTIONS sets their number, and
// they are then made at once; otherwise the number depends on the number of cores, and a session that moves few bytes has none, because
// each takes a process on the node.
struct LaneWish {
  unsigned count;
  uint64_t from;
};
LaneWish laneWish();

// The thread owns everything that it uses. It ends when the other end of `relay` is shut down, some seconds later if it is connecting at
// that moment. Throws kj::Exception.
void startLane(kj::AutoCloseFd relay, const MemoryFile& segment, const Endpoint& node, const Greeting& greeting);

}  // namespace vgpu::relay
