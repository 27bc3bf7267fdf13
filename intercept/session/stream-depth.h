// How much work is pending in one stream. Only a thread that fills a stream waits.
//
// The worker issues every frame when it reaches it, and a driver blocks a call that issues work into a full stream: natively the
// launching thread, here the worker, and with it every frame behind, among which may be what the stream waits for. So the program
// counts each stream's posted frames and waits itself: behind every `groupFrames` of them it posts a fence (streamFence), whose
// sequence number the GPU writes into the stream's completion word, and a thread that has posted a frame while two groups are
// pending waits, outside the gate, until the GPU has passed the older group's fence.
//
// Any thread, without locks; kept in the program over a suspend, as the completion word is.
#pragma once

#include <cuda.h>

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

  // Counts a frame that has been posted. Returns at least how many there were, including this one. If isDue() for that number,
  // call await().
  uint64_t count(const Thread& thread) {
    if (owner.load(std::memory_order_relaxed) == &thread) [[likely]]
      owned.store(owned.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    else
      countShared(thread);
    return owned.load(std::memory_order_acquire) + shared.load(std::memory_order_acquire);
  }
  bool isDue(uint64_t frames) const { return frames >= nextFence.load(std::memory_order_relaxed); }

  // With the number of frames that count() gave: waits while `stream` (0: the default stream of the thread's device) is full, and
  // posts the fence that is due. Outside the gate, with no lock held. CUDA's result; other than success if the session is lost.
  CUresult await(Thread& thread, uint64_t stream, uint64_t frames);

  // The stream's, for whatever is written into it.
  StreamCompletion completion;

  // For another stream.
  void reset();

 private:
  void countShared(const Thread& thread);
  bool passFence(Thread& thread, unsigned device);
  CUresult postFence(Thread& thread, uint64_t stream);

  // Usually one thread posts into a stream. It has a counter of its own and needs no locked operation.
  std::atomic<const Thread*> owner{nullptr};     // the first that has posted
  std::atomic<uint64_t> owned{0}, shared{0};     // frames of the owner, and of all others
  std::atomic<uint64_t> nextFence{groupFrames};  // the frames behind which the next fence goes
  std::atomic<uint64_t> passed{0};               // fences
  std::atomic<uint64_t> fence{0};                // sequence number of the pending one; 0: none. At most one is pending
};

}  // namespace vgpu::client
