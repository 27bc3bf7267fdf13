// Order between frames of different rings. A ring orders its own frames; a frame that must come after one of another ring is preceded by an
// awaitRing frame: its ring's worker thread continues only when the other ring's frames before a position have been executed, that is,
// issued to their GPU.
//
// The awaited position is read before the waiting frame's position is reserved, so frames can never wait for each other in a cycle
// (docs/ring.md). Any thread, outside the gate; no state.
#pragma once

#include "intercept/session/copy/copy-end.h"
#include "intercept/session/event-record.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

// Orders frames sent to `waiting` from now on after those that were sent to `awaited` before `position`. Sends nothing if these have been
// executed already. CUDA_SUCCESS, or the error of a lost session.
CUresult orderBehind(Thread& thread, unsigned waiting, unsigned awaited, uint64_t position);

// Makes `stream` wait until the GPU has passed `fence` in a stream of any device. The fence's frame must have been sent.
CUresult awaitFence(Thread& thread, uint64_t stream, const StreamFence& fence);

// Makes an internal stream on a device, for work that belongs to none of the program's streams.
uint64_t makeOwnStream(Thread& thread, unsigned device, int priority);

// A bit for the device in whose memory the address is; 0 for host memory, and if there is only one device.
uint32_t deviceBit(Session& session, uint64_t address);
inline uint32_t devicesOf(Session& session, uint64_t address) {
  return session.devices.size() == 1 ? 0 : deviceBit(session, address);
}

// For an end of a copy; an array's device counts even if there is only one.
inline uint32_t devicesOf(Session& session, const CopyEnd& end) {
  return end.isArray() ? 1u << handleDevice(end.place.number()) : devicesOf(session, end.address());
}

// Sent by acrossRings() before and after: `touched` has a bit for each other device.
CUresult orderBehindAll(Thread& thread, unsigned device, uint32_t touched);
CUresult orderAllBehind(Thread& thread, uint32_t touched, unsigned device);

// Runs `copy`, which sends frames to `device` that use memory of the devices `touched` (a bit each): after everything sent to those before,
// and before everything sent to them later.
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
