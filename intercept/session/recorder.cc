#include "intercept/session/recorder.h"

#include <kj/debug.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "intercept/session/cancellation.h"
#include "intercept/session/background-thread.h"

namespace vgpu::client {

Recorder::Recorder(const std::string& directory, std::function<RingCut()> executed)
    : Recorder(ObjectList::open(directory), kj::mv(executed)) {}

Recorder::Recorder(std::unique_ptr<ObjectList> opened, std::function<RingCut()> executed)
    : list(kj::mv(opened)), executed(kj::mv(executed)) {
  thread = startBackgroundThread("vgpu-recorder", [this] { write(); });
}

void Recorder::add(const FrameFacts& facts, kj::ArrayPtr<const capnp::word> words) {
  std::unique_lock lock(mutex);
  if (isFull()) [[unlikely]] {
    CancellationOff untilThereIsRoom;  // a condition variable's wait cannot be unwound by a cancellation
    changed.wait(lock, [&] { return !isFull(); });
  }
  const bool isFirst = added++ == committed;
  queue.add(facts, words);
  if (isFirst || isFull()) changed.notify_all();
}

bool Recorder::flush(const std::function<bool()>& givesUp) {
  std::unique_lock lock(mutex);
  flushWanted = added;
  failure = nullptr;
  changed.notify_all();
  while (!changed.wait_for(lock, std::chrono::milliseconds(10),
                           [&] { return committed >= flushWanted || failure != nullptr; })) {
    if (givesUp()) return false;
  }
  KJ_IF_MAYBE(exception, failure) {
    if (committed < flushWanted) kj::throwFatalException(kj::cp(*exception));
  }
  return true;
}

void Recorder::leave() {
  std::lock_guard lock(mutex);
  KJ_REQUIRE(added == committed, "the object list is not committed");
  list->leave();
}

void Recorder::enter(const std::string& directory) {
  std::lock_guard lock(mutex);
  list->enter(directory);
}

// The thread lives as long as the process: the session is never destroyed (session.h).
void Recorder::write() {
  std::unique_lock lock(mutex);
  RecordQueue batch(mostQueuedBytes);
  for (uint64_t applied = 0;;) {
    changed.wait(lock, [&] { return added > committed; });
    changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return flushWanted > committed || isFull(); });
    const bool wasFull = isFull();
    std::swap(batch, queue);
    applied += batch.frames();
    lock.unlock();
    if (wasFull) changed.notify_all();
    kj::Maybe<kj::Exception> caught;
    auto keep = [&](kj::Maybe<kj::Exception> exception) {
      if (caught == nullptr) caught = kj::mv(exception);
    };
    batch.visit([&](RecordedFrame&& frame) { keep(kj::runCatchingExceptions([&] { list->apply(kj::mv(frame)); })); });
    batch.clear();
    auto uncommitted = kj::runCatchingExceptions([&] { list->commit(executed()); });
    KJ_IF_MAYBE(exception, uncommitted) tell(*exception);
    keep(kj::mv(uncommitted));
    lock.lock();
    failure = kj::mv(caught);
    if (failure == nullptr) committed = applied;
    changed.notify_all();
    if (failure != nullptr) changed.wait_for(lock, std::chrono::milliseconds(200));
  }
}

void Recorder::tell(const kj::Exception& exception) {
  if (std::exchange(hasReported, true)) return;
  fprintf(stderr, "vgpu: this program goes on, but cannot be suspended while its object list cannot be written: %s\n",
          exception.getDescription().cStr());
}

}  // namespace vgpu::client
