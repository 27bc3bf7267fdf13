#include "intercept/session/renewal.h"

namespace vgpu::client {

std::string Renewal::await() {
  std::lock_guard one(alone);
  std::unique_lock lock(mutex);
  wanted = true;
  wish.raise();
  changed.wait(lock, [this] { return !wanted; });
  return failure;
}

bool Renewal::isWanted() {
  wish.lower();
  std::lock_guard lock(mutex);
  return wanted && !asked;
}

void Renewal::finish(const std::string& why) {
  asked = false;
  std::lock_guard lock(mutex);
  if (!wanted) return;
  wanted = false;
  failure = why;
  changed.notify_all();
}

}  // namespace vgpu::client
