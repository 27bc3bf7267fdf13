#include "intercept/session/host-functions.h"

#include <algorithm>
#include <utility>

#include "intercept/session/background-thread.h"
#include "vgpu/wire/futex.h"

namespace vgpu::client {

namespace {
constexpr uint64_t spinTime = 200'000;  // nanoseconds; short, because the program does not expect this thread
}

void HostFunctions::add(uint32_t completion, unsigned device, uint64_t sequence, std::function<void()> function, Word word) {
  std::lock_guard lock(mutex);
  if (!thread.joinable()) thread = startBackgroundThread("vgpu-callbacks", [this] { serve(); });
  waiting.push_back({completion, device, sequence, std::move(function), word});
  changed.notify_all();
}

namespace {

// Where the worker is elsewhere, it is the relay that sees what the program has answered (docs/remote.md).
void ringBell(const Segment& segment, unsigned device) {
  RingHeader& ring = segment.ring(device);
  ring.doorbell.fetch_add(1);
  wakeSleepers(segment.waking(), ring.doorbell);
}

}  // namespace

void HostFunctions::giveBack(const Waiting& one) {
  if (one.word == Word::givenBack) completions.give(one.completion, one.device);
}

void HostFunctions::drop(unsigned device, uint64_t sequence) {
  std::vector<Waiting> dropped;  // ends without the lock: with it may end what is the program's
  std::lock_guard lock(mutex);
  std::erase_if(waiting, [&](Waiting& w) {
    bool due = segment.completionWord(w.completion).done.load(std::memory_order_acquire) >= w.sequence;
    if (w.device != device || w.sequence >= sequence || due) return false;
    giveBack(w);
    dropped.push_back(std::move(w));
    return true;
  });
}

std::vector<HostFunctions::Waiting> HostFunctions::takeDue() {
  std::lock_guard lock(mutex);
  auto due = std::partition(waiting.begin(), waiting.end(), [&](const Waiting& w) {
    return segment.completionWord(w.completion).done.load(std::memory_order_acquire) < w.sequence;
  });
  std::vector<Waiting> taken(std::make_move_iterator(due), std::make_move_iterator(waiting.end()));
  waiting.erase(due, waiting.end());
  std::sort(taken.begin(), taken.end(), [](auto& a, auto& b) { return std::pair(a.device, a.sequence) < std::pair(b.device, b.sequence); });
  return taken;
}

// The GPU cannot wake a thread, so while functions are pending this one polls, at increasing intervals. It lives as long as the
// process.
void HostFunctions::serve() {
  // Managed memory that a function touches is brought by this signal's handler.
  sigset_t touches;
  sigemptyset(&touches);
  sigaddset(&touches, SIGSEGV);
  pthread_sigmask(SIG_UNBLOCK, &touches, nullptr);
  for (Backoff backoff(spinTime);;) {
    std::vector<Waiting> dropped;  // ends without the lock
    {
      std::unique_lock lock(mutex);
      if (lost.load(std::memory_order_relaxed)) dropped.swap(waiting);
      if (waiting.empty() && dropped.empty()) {
        changed.wait(lock);
        backoff = Backoff(spinTime);
      }
    }
    auto due = takeDue();
    for (auto& one : due) {
      one.function();
      segment.completionWord(one.completion).answered.store(one.sequence, std::memory_order_release);
      ringBell(segment, one.device);
      giveBack(one);
    }
    if (!due.empty())
      backoff = Backoff(spinTime);
    else if (!backoff.spin())
      std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
  }
}

}  // namespace vgpu::client
