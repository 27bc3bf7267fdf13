#include "intercept/session/host-functions.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "intercept/session/background-thread.h"
#include "intercept/session/call.h"
#include "vgpu/wire/futex.h"

namespace vgpu::client {

namespace {
constexpr uint64_t spinTime = 200'000;  // nanoseconds; short, because the program does not expect this thread to use a core
}

CUresult HostFunctions::post(Thread& thread, std::deque<HostFunctions>& ofDevices, uint64_t stream, Function function, OnFault onFault) {
  auto completion = thread.session.completionWords.take(thread.deviceOf(stream));
  if (!completion) return CUDA_ERROR_OUT_OF_MEMORY;
  Call<api::Cuda::HostFunctionParams> frame(thread.of(stream), api::Method::hostFunction);
  frame.setStream(stream);
  frame->setLine(*completion);
  ofDevices[frame.device()].add(*completion, frame.sequence(), std::move(function), onFault);
  return frame.post();
}

void HostFunctions::start() {
  if (!thread.joinable()) thread = startBackgroundThread(("vgpu-callback" + std::to_string(device)).c_str(), [this] { serve(); });
}

void HostFunctions::add(uint32_t completion, uint64_t sequence, Function function, OnFault onFault, Word word) {
  std::lock_guard lock(mutex);
  start();
  waiting.push_back({completion, sequence, std::move(function), onFault, word});
  changed.notify_all();
}

std::shared_ptr<HostFunctions::OfNode> HostFunctions::addOfNode(uint32_t completion, std::function<void()> function) {
  auto made = std::make_shared<OfNode>(completion);
  // The word may have been used before and contain the last number of that use.
  made->called = segment.completionWord(completion).done.load(std::memory_order_acquire);
  made->expected.store(made->called, std::memory_order_relaxed);
  made->versions = HostFunctions::made(std::move(function));
  std::lock_guard lock(mutex);
  start();
  return ofNodes.emplace_back(std::move(made));
}

void HostFunctions::change(OfNode& node, Made made) noexcept {
  Made ended;  // destroyed without the lock: its destructor may run the program's code
  std::lock_guard lock(mutex);
  const uint64_t last = node.expected.load(std::memory_order_relaxed);
  auto& versions = node.versions;
  const bool isCalled = last != node.called && (versions.size() == 1 || (*std::prev(versions.end(), 2))->last != last);
  if (isCalled) versions.back()->last = last;
  else ended.splice(ended.end(), versions, std::prev(versions.end()));
  versions.splice(versions.end(), made);
}

void HostFunctions::end(OfNode& node) {
  std::lock_guard lock(mutex);
  node.hasEnded = true;
  if (node.expected.load(std::memory_order_relaxed) == node.called)
    std::erase_if(ofNodes, [&](auto& one) { return one.get() == &node; });
}

void HostFunctions::OfNode::forget(uint64_t before, uint64_t reached) {
  uint64_t last = expected.load(std::memory_order_relaxed);
  if (last < before && last > reached) expected.compare_exchange_strong(last, std::max(called, reached), std::memory_order_relaxed);
}

bool HostFunctions::isAnyExpected() const {
  return std::ranges::any_of(ofNodes, [](auto& node) { return node->expected.load() != node->called; });
}

// The thread holds the mutex from setting its flag until it sleeps.
void HostFunctions::wake() {
  if (!isAsleep.exchange(false)) return;  // another launch wakes it
  std::lock_guard lock(mutex);
  changed.notify_all();
}

namespace {

// If the worker is on another host, the relay reads this answer, and the bell wakes it (docs/remote.md).
void ringBell(const Segment& segment, unsigned device) {
  RingHeader& ring = segment.ring(device);
  ring.doorbell.fetch_add(1);
  wakeSleepers(segment.waking(), ring.doorbell);
}

}  // namespace

// After a fault the GPU may still write the word's number.
void HostFunctions::giveBack(const Waiting& one) {
  if (one.word == Word::givenBack) completions.give(one.completion, device, one.before == CUDA_SUCCESS ? 0 : one.sequence);
}

bool HostFunctions::isDue(Waiting& one) const {
  if (segment.completionWord(one.completion).done.load(std::memory_order_acquire) >= one.sequence) return true;
  if (one.onFault == OnFault::called) one.before = static_cast<CUresult>(segment.header().fault[device].load(std::memory_order_relaxed));
  return one.before != CUDA_SUCCESS;
}

void HostFunctions::drop(uint64_t sequence) {
  std::vector<Waiting> dropped;  // destroyed without the lock: its destructor may run the program's code
  std::lock_guard lock(mutex);
  for (auto& node : ofNodes)
    node->forget(sequence, segment.completionWord(node->completion).done.load(std::memory_order_acquire));
  std::erase_if(waiting, [&](Waiting& w) {
    bool due = segment.completionWord(w.completion).done.load(std::memory_order_acquire) >= w.sequence;
    if (w.sequence >= sequence || due) return false;
    giveBack(w);
    dropped.push_back(std::move(w));
    return true;
  });
}

std::vector<HostFunctions::Waiting> HostFunctions::takeDue() {
  std::lock_guard lock(mutex);
  auto due = std::partition(waiting.begin(), waiting.end(), [&](Waiting& one) { return !isDue(one); });
  std::vector<Waiting> taken(std::make_move_iterator(due), std::make_move_iterator(waiting.end()));
  waiting.erase(due, waiting.end());
  std::erase_if(ofNodes, [&](auto& node) {
    const uint64_t last = node->expected.load(std::memory_order_relaxed);
    if (last == node->called) return node->hasEnded;
    // If this node has ended, the word may be in another use by now, with larger numbers.
    const uint64_t reached = std::min(segment.completionWord(node->completion).done.load(std::memory_order_acquire), last);
    if (reached <= node->called) return false;
    while (node->versions.front()->last < reached) node->versions.pop_front();
    auto run = [version = node->versions.front()](CUresult) { if (version->function) version->function(); };
    taken.push_back({node->completion, reached, std::move(run), OnFault::dropped, Word::kept});
    node->called = reached;
    return node->hasEnded && reached == last;
  });
  std::ranges::sort(taken, {}, &Waiting::sequence);
  isCalling = !taken.empty();
  return taken;
}

// The GPU cannot wake a thread, so this one polls at increasing intervals while functions are pending. It lives as long as the process.
void HostFunctions::serve() {
  // The handler of this signal serves the functions' accesses to managed memory.
  sigset_t touches;
  sigemptyset(&touches);
  sigaddset(&touches, SIGSEGV);
  pthread_sigmask(SIG_UNBLOCK, &touches, nullptr);
  for (Backoff backoff(spinTime);;) {
    std::vector<Waiting> dropped;  // destroyed without the lock
    {
      std::unique_lock lock(mutex);
      isCalling = false;
      if (lost.load(std::memory_order_relaxed)) {
        dropped.swap(waiting);
        for (auto& node : ofNodes) node->called = node->expected.load(std::memory_order_relaxed);
      }
      if (waiting.empty() && dropped.empty() && !isAnyExpected()) {
        isAsleep.store(true);
        if (!isAnyExpected()) changed.wait(lock);
        isAsleep.store(false, std::memory_order_relaxed);
        backoff = Backoff(spinTime);
      }
    }
    auto due = takeDue();
    for (auto& one : due) {
      one.function(one.before);
      if (one.before == CUDA_SUCCESS) {
        segment.completionWord(one.completion).answered.store(one.sequence, std::memory_order_release);
        ringBell(segment, device);
      }
      giveBack(one);
    }
    if (!due.empty())
      backoff = Backoff(spinTime);
    else if (!backoff.spin())
      std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
  }
}

}  // namespace vgpu::client
