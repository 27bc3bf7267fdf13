#include "intercept/session/gate.h"

#include <kj/exception.h>


#include "vgpu/wire/futex.h"

namespace vgpu::client {

Gate::Mark& Gate::join() {
  std::lock_guard lock(mutex);
  if (Mark* mark = free) {
    free = mark->nextFree;
    return *mark;
  }
  Mark& mark = marks.emplace_back(static_cast<uint32_t>(marks.size()), newest.load(std::memory_order_relaxed));
  newest.store(&mark, std::memory_order_release);
  return mark;
}

void Gate::part(Mark& mark) {
  std::lock_guard lock(mutex);
  mark.nextFree = free;
  free = &mark;
}

void Gate::waitOutside(Mark& mark) {
  do {
    leave(mark);
    while (closed.load() != 0) futexWait(closed, 1, 100'000'000);
    mark.inside.store(1, std::memory_order_relaxed);
    AsymmetricFence::light();
  } while (closed.load(std::memory_order_acquire) != 0);
}

bool Gate::close(const std::function<bool()>& givesUp) {
  closed.store(1, std::memory_order_relaxed);
  KJ_ON_SCOPE_FAILURE(open());
  AsymmetricFence::heavy();
  for (Mark* mark = newest.load(std::memory_order_acquire); mark != nullptr; mark = mark->older) {
    Backoff backoff;
    while (mark->inside.load() != 0) {
      if (backoff.spin()) continue;
      if (givesUp()) {
        open();
        return false;
      }
      futexWait(mark->inside, 1, backoff.sleepNanoseconds());
    }
  }
  return true;
}

void Gate::awaitOthers(const Mark& own) {
  Mark* first = newest.load(std::memory_order_acquire);
  if (first == &own && first->older == nullptr) return;
  AsymmetricFence::heavy();
  for (Mark* mark = first; mark != nullptr; mark = mark->older)
    for (Backoff backoff; mark != &own && mark->inside.load() != 0;)
      if (!backoff.spin()) futexWait(mark->inside, 1, backoff.sleepNanoseconds());
}

Thread* Gate::findThread(pid_t id) const {
  for (Mark* mark = newest.load(std::memory_order_acquire); mark != nullptr; mark = mark->older)
    if (mark->threadId.load(std::memory_order_acquire) == id) return mark->thread.load(std::memory_order_relaxed);
  return nullptr;
}

void Gate::open() {
  closed.store(0);
  futexWake(closed);
}

}  // namespace vgpu::client
