#include "tools/relay/guest-watcher.h"

#include <kj/debug.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tools/common/guest-sockets.h"
#include "tools/common/reason.h"
#include "tools/relay/guest-stream.h"
#include "tools/relay/node-side.h"

namespace vgpu::relay {
namespace {

using std::chrono::milliseconds;

// How often it looks for newly claimed slots, which is the longest that a claim waits.
constexpr milliseconds leastLook{1}, mostLook{10};
constexpr unsigned looksBeforeRest = 50;  // without a change, before the interval grows

}  // namespace

GuestWatcher::GuestWatcher(kj::AutoCloseFd given, About about, std::string directory)
    : file(std::make_shared<GuestFile>(GuestFile::reopen(given), GuestFile::Side::host)),
      about(std::move(about)),
      runDirectory(std::move(directory)),
      served(file->slots()) {
  std::filesystem::create_directories(attachFolderOf(runDirectory, this->about.name));
}

void GuestWatcher::run() {
  unsigned idle = 0;
  while (true) {
    reap();
    bool any = false;
    for (uint64_t slot = 0; slot < file->slots(); ++slot) any |= lookAt(slot);
    file->writeHeader(about.gpus, about.runsPtx);  // repeated, because the guest may have overwritten it
    file->header().beats.fetch_add(1, std::memory_order_relaxed);
    idle = any ? 0 : idle + 1;
    std::this_thread::sleep_for(std::min(mostLook, leastLook * (1 + idle / looksBeforeRest)));
  }
}

// Returns whether the slot has changed.
bool GuestWatcher::lookAt(uint64_t slot) {
  GuestSlot& words = file->slot(slot);
  uint64_t claim = words.claimed.load(std::memory_order_acquire);
  if (claim == 0 || served[slot].process != 0) return false;
  auto locked = file->lock(slot);  // fails while a process of an earlier vgpud serves it, or a worker has its memory mapped
  if (!locked) return false;
  file->clear(slot);
  const bool isNew = words.ended.load() != claim && words.released.load() != claim && words.served.load() != claim;
  if (isNew)
    serve(slot, claim, kj::mv(*locked));
  else
    words.claimed.compare_exchange_strong(claim, 0, std::memory_order_acq_rel);
  return true;
}

void GuestWatcher::serve(uint64_t slot, uint64_t claim, kj::AutoCloseFd locked) {
  GuestPlace place{file, slot, claim, kj::mv(locked), 0, about.name};
  Segment::prepare(place.segment());
  file->slot(slot).begun.store(0, std::memory_order_relaxed);
  const pid_t child = fork();
  if (child < 0)
    std::fprintf(stderr, "vgpu-relay: a session of virtual machine %s is not served: %s\n", about.name.c_str(), std::strerror(errno));
  if (child == 0) {
    setsid();
    _exit(exitCodeOf("vgpu-relay", [&] {
      NodeSide(std::move(place), runDirectory, attachSocketOf(runDirectory, about.name, slot)).run();
      return 0;
    }));
  }
  served[slot] = {claim, std::max(child, 0)};
  file->slot(slot).served.store(claim, std::memory_order_release);
  if (child < 0) file->slot(slot).ended.store(claim, std::memory_order_release);
}

// A process that has ended in any way has ended its session.
void GuestWatcher::reap() {
  for (pid_t child; (child = waitpid(-1, nullptr, WNOHANG)) > 0;) {
    for (uint64_t slot = 0; slot < served.size(); ++slot) {
      if (served[slot].process != child) continue;
      file->slot(slot).ended.store(served[slot].claim, std::memory_order_release);
      served[slot] = {};
    }
  }
}

}  // namespace vgpu::relay
