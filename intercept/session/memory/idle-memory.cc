#include "intercept/session/memory/idle-memory.h"

#include <kj/exception.h>

#include "intercept/session/failure.h"
#include "intercept/session/background-thread.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

namespace {
constexpr auto period = std::chrono::milliseconds(500);
constexpr auto suspendLimit = std::chrono::milliseconds(100), givesUpLook = std::chrono::milliseconds(1);
}

void IdleMemory::start(Session& session) {
  if (!thread.joinable()) thread = startBackgroundThread("vgpu-memory", [this, &session] { serve(session); });
}

void IdleMemory::wake(Session& session) {
  std::lock_guard lock(mutex);
  start(session);
  if (noted) return;
  noted = true;
  changed.notify_all();
}

void IdleMemory::completeFrees(Session& session, const std::function<bool()>& givesUp) {
  const auto limit = std::chrono::steady_clock::now() + suspendLimit;
  std::unique_lock lock(mutex);
  if (kj::runCatchingExceptions([&] { start(session); }) != nullptr) return;  // no thread can be started: the snapshot has the bytes
  const uint64_t number = ++asked;
  changed.notify_all();
  auto awaitThat = [&](auto&& isSo) {
    while (!isSo() && !givesUp() && std::chrono::steady_clock::now() < limit) changed.wait_for(lock, givesUpLook);
  };
  awaitThat([&] { return completed >= number; });
  awaitThat([&] { return areExecuted(session); });
}

bool IdleMemory::areExecuted(const Session& session) const {
  for (unsigned device = 0; device < session.devices.size(); ++device)
    if (session.segment.ring(device).tail.load(std::memory_order_acquire) < heads[device]) return false;
  return true;
}

void IdleMemory::await(Session& session, std::optional<Time> until) {
  std::unique_lock lock(mutex);
  for (;;) {
    if (completed != asked) {
      const uint64_t number = asked;
      lock.unlock();
      answerOf([&] {
        session.memory.completeFrees(Thread::current(session));
        return CUDA_SUCCESS;
      });
      lock.lock();
      completed = number;
      for (unsigned device = 0; device < session.devices.size(); ++device) heads[device] = session.segment.ring(device).head.load();
      changed.notify_all();
    } else if (until) {
      if (changed.wait_until(lock, *until) == std::cv_status::timeout) return;
    } else {
      if (noted.exchange(false)) return;
      changed.wait(lock);
    }
  }
}

void IdleMemory::serve(Session& session) {
  for (;;) {
    await(session, std::nullopt);
    for (bool more = true; more && !session.lost.load();) {
      await(session, std::chrono::steady_clock::now() + period);
      more = false;
      answerOf([&] {
        for (unsigned device = 0; device < session.devices.size(); ++device)
          more |= session.memory.trimUnneeded(Thread::current(session), device);
        return CUDA_SUCCESS;
      });
    }
  }
}

}  // namespace vgpu::client
