#include "tools/vgpud/guests.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

// Restarts the process when it ends; its sessions do not end with it.
kj::Promise<void> Guests::watch(Guest& guest, SpawnRequest request, kj::Timer& timer, Processes& processes) {
  kj::AutoCloseFd own = GuestFile::reopen(guest.file);
  request.inherits = {{own.get(), relayDescriptor}};
  guest.process = spawn(request);
  auto child = processes.adopt(guest.process);
  return child.ended.then([this, &guest, request = std::move(request), &timer, &processes](std::string&& how) mutable {
    guest.process = 0;
    if (isClosing) return kj::Promise<void>(kj::READY_NOW);
    spdlog::error("the process that looks for sessions of guest {} {}; it is started again", guest.option.name, how);
    return timer.afterDelay(1 * kj::SECONDS).then([this, &guest, request = std::move(request), &timer, &processes]() mutable {
      return isClosing ? kj::Promise<void>(kj::READY_NOW) : watch(guest, std::move(request), timer, processes);
    });
  });
}

// Refuses here, instead of in the process, whatever can be decided without reading guest memory.
kj::Promise<void> Guests::expect(kj::AsyncIoContext& io, Processes& processes, const std::string& runDirectory,
                                 Newcomer newcomer) {
  const ProgramPlace& place = newcomer.place;
  auto guest = std::ranges::find(guests, place.guest, [](const Guest& one) -> const std::string& { return one.option.name; });
  if (guest == guests.end())
    fail("the session's program is in a virtual machine, guest " + place.guest +
         ", and this vgpud does not serve that guest: start it with --guest " + place.guest + "=FILE");
  struct stat status;
  KJ_SYSCALL(fstat(guest->file, &status));
  if (static_cast<uint64_t>(status.st_size) != place.fileBytes)
    fail(guest->option.file + " of guest " + place.guest + " has " + std::to_string(status.st_size) +
         " bytes, but the session comes from one with " + std::to_string(place.fileBytes) + ": give both the same size");
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
  KJ_SYSCALL(write(ours, newcomer.token.data(), newcomer.token.size()));
  kj::AutoCloseFd own = GuestFile::reopen(guest->file);
  // In the form --name=VALUE, because a program's name may look like an option.
  SpawnRequest request = relayRequest({"newcomer", "--name=" + place.guest, "--slot", std::to_string(place.slot), "--claim",
                                       std::to_string(place.claim), "--run-dir", runDirectory, "--session-name=" + newcomer.name,
                                       "--program=" + newcomer.program, "--pid", std::to_string(newcomer.pid)});
  request.inherits = {{own.get(), relayDescriptor}, {theirs.get(), relayDescriptor + 1}};
  auto child = processes.adopt(spawn(request));  // its child serves the session, and outlives this daemon
  theirs = nullptr;
  auto stream = io.lowLevelProvider->wrapSocketFd(kj::mv(ours));
  auto said = stream->readAllText().attach(kj::mv(stream));
  return said.attach(kj::mv(child.ended)).then([](kj::String&& said) {
    if (said.size() == 1 && said[0] == nodeReached) return;
    fail(said.size() > 1 && said[0] == nodeNotReached ? said.slice(1).cStr()
                                                      : "the relay process for the session's slot in its machine's memory has ended");
  });
}

void Guests::close() {
  isClosing = true;
  for (const Guest& guest : guests)
    if (guest.process > 0) kill(guest.process, SIGTERM);
}

}  // namespace vgpu::daemon
