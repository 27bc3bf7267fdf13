// Limits the work pending in one stream. Only a thread that fills a stream waits.
//
// The worker issues every frame when it reaches it, and a driver blocks a call that issues work into a full stream: natively that blocks
// the launching thread, here the worker and all later frames, perhaps including those that the stream waits for. So the program counts each
// stream's posted frames and waits itself: after every `groupFrames` frames it posts a fence (streamFence), whose sequence number the GPU
// writes into the stream's completion word, and a thread that has posted a frame while two groups are pending waits, outside the gate,
// until the GPU has passed the older group's fence. A driver also blocks after a certain amount of pageable bytes, and bytes in a frame are
// pageable for it, so such a frame counts as several.
//
// Any thread, lock-free; kept in the program over a suspend, as the completion word is.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "intercept/session/stream-completion.h"

namespace vgpu::client {

class Thread;

class alignas(64) StreamDepth {
 public:
  // Two groups and their fences are fewer than the 1,022 launches that a driver accepts in a stream before it blocks, and more than the
  // thousand that programs rely on.
  static constexpr uint64_t groupFrames = 504;
  // Two groups are 3.7 MiB of bytes in frames: less than the 250 copies of 16 KiB, 84 of 48 KiB or 987 of 4 KiB that a driver accepts
  // (docs/facts.md), with a margin for what several threads may post before they wait.
  static constexpr uint64_t unitsOfFrame = 64, bytesOfUnit = 60, groupUnits = groupFrames * unitsOfFrame;

  // Counts a posted frame, of whose bytes the driver copies `pageableBytes` at the call. Returns at least the number of units so far,
  // including this frame's. If isDue() for that number, call await().
  uint64_t count(const Thread& thread, uint64_t pageableBytes = 0) {
    const uint64_t units = std::max(unitsOfFrame, pageableBytes / bytesOfUnit);
    if (owner.load(std::memory_order_relaxed) == &thread) [[likely]]
      owned.store(owned.load(std::memory_order_relaxed) + units, std::memory_order_release);
    else
      countShared(thread, units);
    return owned.load(std::memory_order_acquire) + shared.load(std::memory_order_acquire);
  }
  bool isDue(uint64_t units) const { return units >= nextFence.load(std::memory_order_relaxed); }

  // `units`: the result of count(). Waits while `stream` (0: the default stream of the thread's device) is full, and posts the fence if it
  // is due. Outside the gate, with no lock held. CUDA's result; not success if the session is lost.
  CUresult await(Thread& thread, uint64_t stream, uint64_t units);

  // The stream's completion word, for all its records and fences.
  StreamCompletion completion;

  // For reuse by another stream.
  void reset();

 private:
  void countShared(const Thread& thread, uint64_t units);
  bool passFence(Thread& thread, unsigned device);
  CUresult postFence(Thread& thread, uint64_t stream);

  // Usually one thread posts into a stream: it has its own counter, without locked operations.
  std::atomic<const Thread*> owner{nullptr};     // the first thread that posted
  std::atomic<uint64_t> owned{0}, shared{0};     // units of the owner, and of all other threads
  std::atomic<uint64_t> nextFence{groupUnits};   // the number of units after which the next fence is due
  std::atomic<uint64_t> passed{0};               // how many fences the GPU has passed
  std::atomic<uint64_t> fence{0};                // sequence number of the pending fence; 0: none
};

}  // namespace vgpu::client
