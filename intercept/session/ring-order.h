// Order between frames of different rings. A ring orders its own frames; a frame that must come behind one of another ring is
// preceded by a frame that says so (awaitRing): the worker's thread of its ring goes on when the other has executed the frames
// before a position, which means that it has issued them to its GPU.
//
// The awaited position is read before the waiting frame is reserved, so frames can never wait for each other in a circle
// (docs/ring.md). Any thread, outside the gate; no state.
#pragma once

#include "intercept/session/thread.h"

namespace vgpu::client {

// Lets the frames that are sent to `waiting` from now on come behind those that were sent to `awaited` before `position`. Nothing
// is sent if these have been executed. CUDA_SUCCESS, or the error of a lost session.
CUresult orderBehind(Thread& thread, unsigned waiting, unsigned awaited, uint64_t position);

// A bit for each device in whose memory one of these addresses is; none for memory of the host.
uint32_t devicesOf(Session& session, uint64_t destination, uint64_t source);

// Runs `copy`, which sends frames to `device` that use memory of the devices `touched` (a bit each): behind all that was sent to
// these before, and before all that is sent to them after.
template <typename Copy>
CUresult acrossRings(Thread& thread, unsigned device, uint32_t touched, Copy&& copy) {
  touched &= ~(1u << device);
  if (touched == 0) [[likely]] return copy();
  Session& session = thread.session;
  auto forTouched = [&](auto&& order) -> CUresult {
    for (unsigned other = 0; other < session.devices.size(); ++other)
      if ((touched >> other & 1) != 0)
        if (CUresult error = order(other)) return error;
    return CUDA_SUCCESS;
  };
  auto head = [&](unsigned of) { return session.segment.ring(of).head.load(std::memory_order_acquire); };
  if (CUresult error = forTouched([&](unsigned other) { return orderBehind(thread, device, other, head(other)); })) return error;
  CUresult result = copy();
  CUresult after = forTouched([&](unsigned other) { return orderBehind(thread, other, device, head(device)); });
  return result != CUDA_SUCCESS ? result : after;
}

}  // namespace vgpu::client
