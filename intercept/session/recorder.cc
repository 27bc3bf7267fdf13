#include "intercept/session/recorder.h"

#include <kj/debug.h>

#include <chrono>

#include "intercept/session/quiet-thread.h"

namespace vgpu {

Recorder::Recorder(const std::string& directory, std::function<uint64_t()> executed)
    : list(ObjectList::open(directory)), executed(kj::mv(executed)) {
  thread = startQuietThread("vgpu-recorder", [this] { write(); });
}

void Recorder::add(RecordedFrame frame) {
  std::lock_guard lock(mutex);
  queue.push_back(kj::mv(frame));
  if (++added == committed + 1) changed.notify_all();
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

// The thread lives as long as the process: the session is never taken down (session.h).
void Recorder::write() {
  std::unique_lock lock(mutex);
  for (uint64_t applied = 0;;) {
    changed.wait(lock, [&] { return added > committed; });
    changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return flushWanted > committed; });
    std::vector<RecordedFrame> batch = kj::mv(queue);
    queue.clear();
    applied += batch.size();
    lock.unlock();
    kj::Maybe<kj::Exception> caught;
    auto keep = [&](kj::Maybe<kj::Exception> exception) {
      if (caught == nullptr) caught = kj::mv(exception);
    };
    for (auto& frame : batch) keep(kj::runCatchingExceptions([&] { list->apply(kj::mv(frame)); }));
    keep(kj::runCatchingExceptions([&] { list->commit(executed()); }));
    lock.lock();
    failure = kj::mv(caught);
    if (failure == nullptr) committed = applied;
    changed.notify_all();
    if (failure != nullptr) changed.wait_for(lock, std::chrono::milliseconds(200));
  }
}

}  // namespace vgpu
