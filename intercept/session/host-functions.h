// Functions of the program that the streams of one device call (cuLaunchHostFunc): the GPU writes that it has reached one and waits;
// a thread of ours runs it in the program's process and writes that it is done. Each device has its own thread, so that a function
// may wait for one of another device, as with CUDA, where each context has its thread.
//
// A node of an executable graph is reached again and again. Its function is added once, and a launch only says its number: it takes
// no lock, and makes a system call only if the thread sleeps because nothing was left to be reached.
//
// `mutex` guards the functions, and is not held while one runs. The thread starts with the first function. A suspend waits for
// those that the worker has issued; the others are pending frames of the snapshot.
#pragma once

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "intercept/session/completion-words.h"

namespace vgpu::client {

class Thread;

class HostFunctions {
 public:
  HostFunctions(const Segment& segment, CompletionWords& completions, const std::atomic<bool>& lost, unsigned device)
      : segment(segment), completions(completions), lost(lost), device(device) {}

  // Whether the completion word is given back when the function has run.
  enum class Word { givenBack, kept };
  // Whether the function is called with what has ended the context, if that has come before the GPU could reach it
  // (cuStreamAddCallback), or never then (cuLaunchHostFunc).
  enum class OnFault { called, dropped };
  // Is given the result of the work before it.
  using Function = std::function<void(CUresult)>;
  // `function` runs once the GPU has written `sequence` into `completion`.
  void add(uint32_t completion, uint64_t sequence, Function function, OnFault onFault = OnFault::dropped, Word word = Word::givenBack);
  // The stream calls `function`, on the thread that is of its device among these.
  static CUresult post(Thread& thread, std::deque<HostFunctions>& ofDevices, uint64_t stream, Function function,
                       OnFault onFault = OnFault::dropped);
  // Whether a function is still to be called, or being called.
  bool isAnyPending() const {
    std::lock_guard lock(mutex);
    return isCalling || !waiting.empty() || isAnyExpected();
  }
  // Drops those of frames before `sequence`, which the GPU will not reach because its context has ended.
  void drop(uint64_t sequence);

  // A function that a node may be given: with it, that cannot fail. An empty function does nothing.
  struct Version {
    std::function<void()> function;
    uint64_t last;  // launch that calls this one
  };
  using Made = std::list<std::shared_ptr<Version>>;
  static Made made(std::function<void()> function) { return {std::make_shared<Version>(Version{std::move(function), UINT64_MAX})}; }

  // The function of a node, which each launch of its graph calls when the GPU has come to it.
  class OfNode {
   public:
    explicit OfNode(uint32_t completion) : completion(completion) {}
    // That launch will call it. Before its frame is published; launched() follows.
    void expect(uint64_t sequence) { expected.store(sequence); }

   private:
    friend class HostFunctions;
    // Launches before that number do not call it any more, unless the GPU has come to it.
    void forget(uint64_t before, uint64_t reached);

    const uint32_t completion;
    std::atomic<uint64_t> expected{0};
    // The rest under the mutex of all.
    uint64_t called = 0;  // the last launch that has called it, or been given up
    Made versions;        // the last one is that of launches to come
    bool hasEnded = false;
  };
  std::shared_ptr<OfNode> addOfNode(uint32_t completion, std::function<void()> function);
  // What launches from now on call.
  void change(OfNode& node, Made made) noexcept;
  // No launch from now on calls it.
  void end(OfNode& node);
  // A launch has said its number to its nodes. Both are sequentially consistent, and so is what the thread does before it sleeps: it
  // sets `isAsleep`, then looks at the numbers. So it sees this launch's, or this sees that it sleeps.
  void launched() {
    if (isAsleep.load()) [[unlikely]] wake();
  }

 private:
  struct Waiting {
    uint32_t completion;
    uint64_t sequence;
    Function function;
    OnFault onFault;
    Word word;
    CUresult before = CUDA_SUCCESS;
  };
  bool isDue(Waiting& one) const;
  void start();
  void serve();
  void wake();
  bool isAnyExpected() const;
  void giveBack(const Waiting& one);
  // Those that the GPU has reached, or never will, in the order of their frames.
  std::vector<Waiting> takeDue();

  const Segment& segment;
  CompletionWords& completions;
  const std::atomic<bool>& lost;
  const unsigned device;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<Waiting> waiting;
  bool isCalling = false;  // some that were waiting
  std::vector<std::shared_ptr<OfNode>> ofNodes;
  std::atomic<bool> isAsleep{false};
  std::thread thread;
};

}  // namespace vgpu::client
