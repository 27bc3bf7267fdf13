#include "intercept/session/memory/idle-memory.h"

#include <chrono>

#include "intercept/session/failure.h"
#include "intercept/session/background-thread.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

namespace {
constexpr auto period = std::chrono::milliseconds(500);
}

void IdleMemory::wake(Session& session) {
  std::lock_guard lock(mutex);
  if (!thread.joinable()) thread = startBackgroundThread("vgpu-memory", [this, &session] { serve(session); });
  if (noted) return;
  noted = true;
  changed.notify_all();
}

void IdleMemory::serve(Session& session) {
  for (;;) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return noted.load(); });
      noted = false;
    }
    for (bool more = true; more && !session.lost.load();) {
      std::this_thread::sleep_for(period);
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
