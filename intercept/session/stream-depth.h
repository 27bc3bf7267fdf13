// How much work of one stream is on its way. A thread that fills a stream waits, and nobody else.
//
// The worker issues every frame when it comes to it, and a driver with no room for more in a stream blocks whoever issues:
// natively the launching thread, here the worker, and with it every frame behind. What a stream waits for may be among
// those. So the program counts each stream's posted frames and does natively's waiting itself: behind every `groupFrames`
// of them it posts a mark, whose sequence number the GPU writes into the stream's completion word, and a thread that has posted
// a frame while two groups were on their way waits, outside the gate, until the older one's mark has been passed.
//
// Any thread, without locks; kept in the program over a suspend, as the completion word is.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "intercept/session/stream-completion.h"

namespace vgpu::client {

class Thread;

class StreamDepth {
 public:
  // Two groups and their marks are less than the 1,022 launches that a driver takes in a stream before it blocks, and more
  // than the thousand that programs find to be safe.
  static constexpr uint64_t groupFrames = 504;

  // Counts a frame that has been posted: how many there were at least, with this one. If that is due, await() it.
  uint64_t count(const Thread& thread) {
    if (owner.load(std::memory_order_relaxed) == &thread) [[likely]]
      owned.store(owned.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    else
      countShared(thread);
    return owned.load(std::memory_order_acquire) + shared.load(std::memory_order_acquire);
  }
  bool isDue(uint64_t frames) const { return frames >= nextMark.load(std::memory_order_relaxed); }

  // With the number of frames that count() gave: waits while `stream` (0: the default stream of the thread's device) is
  // full, and posts the mark that is due. Outside the gate, with no lock held. CUDA's answer; other than success if the
  // session is lost.
  CUresult await(Thread& thread, uint64_t stream, uint64_t frames);

  // The stream's, for whatever is written into it.
  StreamCompletion completion;

  // For another stream.
  void reset();

 private:
  void countShared(const Thread& thread);
  bool passMark(Thread& thread, unsigned device);
  CUresult postMark(Thread& thread, uint64_t stream);

  // Nearly always one thread posts into a stream. It counts without a locked operation, for itself.
  std::atomic<const Thread*> owner{nullptr};    // the first that has posted
  std::atomic<uint64_t> owned{0}, shared{0};    // frames of the owner, and of all others
  std::atomic<uint64_t> nextMark{groupFrames};  // the frames behind which the next mark goes
  std::atomic<uint64_t> passed{0};              // marks
  std::atomic<uint64_t> mark{0};                // sequence number of the one on its way; 0: none. Never a second
};

}  // namespace vgpu::client
