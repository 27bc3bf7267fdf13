// Order between frames of different rings. A ring orders its own frames; a frame that must come behind one of another ring is
// preceded by a frame that says so (awaitRing): the worker's thread of its ring goes on when the other has executed the frames
// before a position, which means that it has issued them to its GPU.
//
// The awaited position is read before the waiting frame is reserved, so frames can never wait for each other in a circle
// (docs/ring.md). Any thread, outside the gate; no state.
#pragma once

#include "intercept/session/copy/copy-end.h"
#include "intercept/session/event-record.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

// Lets the frames that are sent to `waiting` from now on come behind those that were sent to `awaited` before `position`. Nothing
// is sent if these have been executed. CUDA_SUCCESS, or the error of a lost session.
CUresult orderBehind(Thread& thread, unsigned waiting, unsigned awaited, uint64_t position);

// Lets a stream wait until the GPU has passed that place in one of any device. Its frame has been sent.
CUresult awaitFence(Thread& thread, uint64_t stream, const StreamFence& fence);

// A stream of our own on a device, for work that the program has not given to any.
uint64_t makeOwnStream(Thread& thread, unsigned device, int priority);

// A bit for the device in whose memory that address is; none for memory of the host, and if there is one device.
uint32_t deviceBit(Session& session, uint64_t address);
inline uint32_t devicesOf(Session& session, uint64_t address) {
  return session.devices.size() == 1 ? 0 : deviceBit(session, address);
}

// Of an end of a copy, and of an array too if there is one device.
inline uint32_t devicesOf(Session& session, const CopyEnd& end) {
  return end.isArray() ? 1u << handleDevice(end.place.number()) : devicesOf(session, end.address());
}

// What acrossRings() sends before and after: each other device has a bit in `touched`.
CUresult orderBehindAll(Thread& thread, unsigned device, uint32_t touched);
CUresult orderAllBehind(Thread& thread, uint32_t touched, unsigned device);

// Runs `copy`, which sends frames to `device` that use memory of the devices `touched` (a bit each): behind all that was sent to
// these before, and before all that is sent to them after.
template <typename Copy>
CUresult acrossRings(Thread& thread, unsigned device, uint32_t touched, Copy&& copy) {
  touched &= ~(1u << device);
  if (touched != 0) [[unlikely]]
    if (CUresult error = orderBehindAll(thread, device, touched)) return error;
  CUresult result = copy();
  if (touched == 0) [[likely]] return result;
  CUresult after = orderAllBehind(thread, touched, device);
  return result != CUDA_SUCCESS ? result : after;
}

}  // namespace vgpu::client
