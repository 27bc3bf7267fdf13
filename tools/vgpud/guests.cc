#include "tools/vgpud/guests.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

#include <utility>

#include "tools/common/node-relay.h"
#include "vgpu/base/fail.h"
#include "vgpu/wire/guest-file.h"

namespace vgpu::daemon {

Guests::Guests(const std::vector<std::string>& options) {
  for (const std::string& text : options) {
    Guest guest{parseGuest(text), {}, 0};
    guest.file = GuestFile::make(guest.option.file, guest.option.bytes);
    if (flock(guest.file, LOCK_EX | LOCK_NB) < 0) fail(guest.option.file + " is served by another vgpud, or named twice");
    guests.push_back(std::move(guest));
  }
}

kj::Promise<void> Guests::serve(size_t gpus, bool runsPtx, kj::Timer& timer, Processes& processes,
                                const std::string& runDirectory) {
  auto watches = kj::heapArrayBuilder<kj::Promise<void>>(guests.size());
  for (Guest& guest : guests) {
    spdlog::info("programs of guest {} are served through {}", guest.option.name, guest.option.file);
    SpawnRequest request =
        relayRequest({"guest", "--name", guest.option.name, "--gpus", std::to_string(gpus), "--run-dir", runDirectory});
    if (runsPtx) request.arguments.emplace_back("--ptx");
    request.deathSignal = SIGTERM;
    watches.add(watch(guest, std::move(request), timer, processes));
  }
  return kj::joinPromises(watches.finish());
}

// Its sessions do not end with it.
kj::Promise<void> Guests::watch(Guest& guest, SpawnRequest request, kj::Timer& timer, Processes& processes) {
  kj::AutoCloseFd own = GuestFile::reopen(guest.file);
  request.inherits = {{own.get(), relayDescriptor}};
  guest.process = spawn(request);
  auto child = processes.adopt(guest.process);
  return child.ended.then([this, &guest, request = std::move(request), &timer, &processes](std::string&& how) mutable {
    guest.process = 0;
    if (isClosing) return kj::Promise<void>(kj::READY_NOW);
    spdlog::error("the process that looks for sessions of guest {} {}; another one takes its place", guest.option.name, how);
    return timer.afterDelay(1 * kj::SECONDS).then([this, &guest, request = std::move(request), &timer, &processes]() mutable {
      return isClosing ? kj::Promise<void>(kj::READY_NOW) : watch(guest, std::move(request), timer, processes);
    });
  });
}

void Guests::close() {
  isClosing = true;
  for (const Guest& guest : guests)
    if (guest.process > 0) kill(guest.process, SIGTERM);
}

}  // namespace vgpu::daemon
