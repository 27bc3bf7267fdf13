// How much work is pending in one stream. Only a thread that fills a stream waits.
//
// The worker issues every frame when it reaches it, and a driver blocks a call that issues work into a full stream: natively the
// launching thread, here the worker, and with it every frame behind, among which may be what the stream waits for. So the program
// counts each stream's posted frames and waits itself: behind every `groupFrames` of them it posts a fence (streamFence), whose
// sequence number the GPU writes into the stream's completion word, and a thread that has posted a frame while two groups are
// pending waits, outside the gate, until the GPU has passed the older group's fence. A driver also blocks behind some bytes of
// pageable memory, which those in a frame are to it, so such a frame counts for as many as its bytes are worth.
//
// Any thread, without locks; kept in the program over a suspend, as the completion word is.
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
  // Two groups and their fences are less than the 1,022 launches that a driver takes in a stream before it blocks, and more than
  // the thousand that programs rely on.
  static constexpr uint64_t groupFrames = 504;
  // Two groups are 3.7 MiB of a frame's own bytes: less than the 250 copies of 16 KiB, the 84 of 48 KiB and the 987 of 4 KiB that a driver
  // takes (docs/facts.md), by what some threads may have posted before they wait.
  static constexpr uint64_t unitsOfFrame = 64, bytesOfUnit = 60, groupUnits = groupFrames * unitsOfFrame;

  // Counts a frame that has been posted, with so many bytes that its driver copies at the call. Returns at least how many units there
  // were, including this frame's. If isDue() for that number, call await().
  uint64_t count(const Thread& thread, uint64_t pageableBytes = 0) {
    const uint64_t units = std::max(unitsOfFrame, pageableBytes / bytesOfUnit);
    if (owner.load(std::memory_order_relaxed) == &thread) [[likely]]
      owned.store(owned.load(std::memory_order_relaxed) + units, std::memory_order_release);
    else
      countShared(thread, units);
    return owned.load(std::memory_order_acquire) + shared.load(std::memory_order_acquire);
  }
  bool isDue(uint64_t units) const { return units >= nextFence.load(std::memory_order_relaxed); }

  // With the number that count() gave: waits while `stream` (0: the default stream of the thread's device) is full, and
  // posts the fence that is due. Outside the gate, with no lock held. CUDA's result; other than success if the session is lost.
  CUresult await(Thread& thread, uint64_t stream, uint64_t units);

  // The stream's, for whatever is written into it.
  StreamCompletion completion;

  // For another stream.
  void reset();

 private:
  void countShared(const Thread& thread, uint64_t units);
  bool passFence(Thread& thread, unsigned device);
  CUresult postFence(Thread& thread, uint64_t stream);

  // Usually one thread posts into a stream. It has a counter of its own and needs no locked operation.
  std::atomic<const Thread*> owner{nullptr};     // the first that has posted
  std::atomic<uint64_t> owned{0}, shared{0};     // units of the owner, and of all others
  std::atomic<uint64_t> nextFence{groupUnits};   // the units behind which the next fence goes
  std::atomic<uint64_t> passed{0};               // fences
  std::atomic<uint64_t> fence{0};                // sequence number of the pending one; 0: none. At most one is pending
};

}  // namespace vgpu::client
