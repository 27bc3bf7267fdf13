#include <kj/debug.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "tools/relay/bell-thread.h"
#include "vgpu/wire/futex.h"

namespace vgpu::relay {

namespace {

// Sleeps while all words have their expected values. Needs Linux 5.16; on older systems it sleeps for a millisecond.
void futexWaitAny(const std::vector<std::atomic<uint32_t>*>& words, const std::vector<uint32_t>& expected) {
  std::vector<futex_waitv> waits;
  for (size_t i = 0; i < words.size(); ++i)
    waits.push_back({.val = expected[i], .uaddr = reinterpret_cast<uintptr_t>(words[i]), .flags = FUTEX_32, .__reserved = 0});
  long woken = syscall(SYS_futex_waitv, waits.data(), waits.size(), 0, nullptr, 0);
  if (woken < 0 && errno == ENOSYS) usleep(1000);
}

}  // namespace

BellThread::BellThread(std::vector<std::atomic<uint32_t>*> all) : bells(std::move(all)) {
  int fd;
  KJ_SYSCALL(fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  event = kj::AutoCloseFd(fd);
  for (auto* bell : bells) seen.push_back(bell->load());
  thread = std::thread([this] { run(); });
}

BellThread::~BellThread() {
  ends = true;
  bells.front()->fetch_add(1);
  futexWake(*bells.front());  // another relay's thread may sleep there too
  thread.join();
}

void BellThread::clear() {
  uint64_t count;
  [[maybe_unused]] ssize_t got = read(event, &count, sizeof count);
}

// A bell that is rung between two sleeps differs from the number read before, so the next sleep ends at once.
void BellThread::run() {
  while (!ends) {
    futexWaitAny(bells, seen);
    bool any = false;
    for (size_t i = 0; i < bells.size(); ++i) {
      uint32_t now = bells[i]->load();
      any |= now != seen[i];
      seen[i] = now;
    }
    uint64_t one = 1;
    if (any) [[maybe_unused]]
      auto put = write(event, &one, sizeof one);
  }
}

}  // namespace vgpu::relay
