// Functions of the program that the streams of one device call (cuLaunchHostFunc): the GPU writes that it has reached the function and
// waits; a thread of ours runs it in the program's process and writes that it is done. Each device has its own thread, so that a function
// may wait for a function of another device, as in CUDA, where each context has a thread.
//
// A node of an executable graph is reached repeatedly. Its function is added once, and a launch only stores its sequence number: without a
// lock, and with a system call only if the thread sleeps because nothing was pending.
//
// `mutex` guards the functions and is not held while one runs. The thread starts with the first function. A suspend waits for functions
// that the worker has issued; the others are pending frames of the snapshot.
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

  // Whether the completion word is given back after the function has run.
  enum class Word { givenBack, kept };
  // If a fault ends the context before the GPU reaches the function: whether the function is called with the fault (cuStreamAddCallback) or
  // never (cuLaunchHostFunc).
  enum class OnFault { called, dropped };
  // Receives the result of the work before it.
  using Function = std::function<void(CUresult)>;
  // Runs `function` once the GPU has written `sequence` into `completion`.
  void add(uint32_t completion, uint64_t sequence, Function function, OnFault onFault = OnFault::dropped, Word word = Word::givenBack);
  // Makes the stream call `function`, on the thread of its device among `ofDevices`.
  static CUresult post(Thread& thread, std::deque<HostFunctions>& ofDevices, uint64_t stream, Function function,
                       OnFault onFault = OnFault::dropped);
  // Whether a function is pending or running.
  bool isAnyPending() const {
    std::lock_guard lock(mutex);
    return isCalling || !waiting.empty() || isAnyExpected();
  }
  // Drops the functions of frames before `sequence`, which the GPU will not reach because its context has ended.
  void drop(uint64_t sequence);

  // A function for a node, allocated beforehand so that giving it to the node cannot fail. An empty function does nothing.
  struct Version {
    std::function<void()> function;
    uint64_t last;  // the last launch that calls this one
  };
  using Made = std::list<std::shared_ptr<Version>>;
  static Made made(std::function<void()> function) { return {std::make_shared<Version>(Version{std::move(function), UINT64_MAX})}; }

  // The function of a graph node, called once for each launch when the GPU reaches the node.
  class OfNode {
   public:
    explicit OfNode(uint32_t completion) : completion(completion) {}
    // The launch with that sequence will call it. Before its frame is published; launched() follows.
    void expect(uint64_t sequence) { expected.store(sequence); }

   private:
    friend class HostFunctions;
    // Launches before that sequence no longer call it, unless the GPU has reached the node.
    void forget(uint64_t before, uint64_t reached);

    const uint32_t completion;
    std::atomic<uint64_t> expected{0};
    // The other members are under the HostFunctions' mutex.
    uint64_t called = 0;  // the last launch that has called it or been dropped
    Made versions;        // the last element is for future launches
    bool hasEnded = false;
  };
  std::shared_ptr<OfNode> addOfNode(uint32_t completion, std::function<void()> function);
  // Changes the function that later launches call.
  void change(OfNode& node, Made made) noexcept;
  // No later launch calls it.
  void end(OfNode& node);
  // Called after a launch has stored its sequence in its nodes. The store and this load are sequentially consistent, as are the thread's
  // store of `isAsleep` and its later loads of the sequences: either the thread sees this launch, or this sees that the thread sleeps.
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
  // Takes the functions that the GPU has reached, or never will, in the order of their frames.
  std::vector<Waiting> takeDue();

  const Segment& segment;
  CompletionWords& completions;
  const std::atomic<bool>& lost;
  const unsigned device;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<Waiting> waiting;
  bool isCalling = false;  // functions taken from `waiting`
  std::vector<std::shared_ptr<OfNode>> ofNodes;
  std::atomic<bool> isAsleep{false};
  std::thread thread;
};

}  // namespace vgpu::client
