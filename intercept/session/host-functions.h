// Functions of the program that a stream calls (cuLaunchHostFunc): the GPU writes that it has reached one and waits; a thread of
// ours runs it in the program's process and writes that it is done.
//
// `mutex` guards the list of functions that the GPU has not reached yet, and is not held while one runs. The thread starts with
// the first function. A suspend waits for those that the worker has issued; the others are pending frames of the snapshot.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "intercept/session/completion-words.h"

namespace vgpu::client {

class HostFunctions {
 public:
  HostFunctions(const Segment& segment, CompletionWords& completions, const std::atomic<bool>& lost)
      : segment(segment), completions(completions), lost(lost) {}

  // Whether the completion word is given back when the function has run.
  enum class Word { givenBack, kept };
  // `function` runs once the GPU of `device` has written `sequence` into `completion`.
  void add(uint32_t completion, unsigned device, uint64_t sequence, std::function<void()> function, Word word = Word::givenBack);
  // Drops those of frames before `sequence`, which the GPU will not reach because its context has ended.
  void drop(unsigned device, uint64_t sequence);

 private:
  struct Waiting {
    uint32_t completion;
    unsigned device;
    uint64_t sequence;
    std::function<void()> function;
    Word word;
  };
  void serve();
  void giveBack(const Waiting& one);
  // Those that a GPU has reached, those of one GPU in the order of their frames.
  std::vector<Waiting> takeDue();

  const Segment& segment;
  CompletionWords& completions;
  const std::atomic<bool>& lost;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Waiting> waiting;
  std::thread thread;
};

}  // namespace vgpu::client
