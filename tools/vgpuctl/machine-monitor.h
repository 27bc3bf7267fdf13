// A client of a virtual machine's monitor: the QEMU machine protocol (QMP, https://www.qemu.org/docs/master/interop/qmp-spec.html), lines
// of JSON with commands, their replies, and events in between.
//
// Owns the connection. Used by the event loop's thread. A monitor serves one client at a time: a second client gets no greeting.
#pragma once

#include <kj/async-io.h>

#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace vgpu::ctl {

class MachineMonitor {
 public:
  // `address`: the path of a unix socket, or tcp:HOST:PORT. Throws kj::Exception if no QEMU answers there.
  MachineMonitor(kj::AsyncIoContext& io, const std::string& address);
  MachineMonitor(const MachineMonitor&) = delete;
  MachineMonitor& operator=(const MachineMonitor&) = delete;

  // Resolves to what the command returns; rejects with the reason that QEMU gives.
  kj::Promise<nlohmann::json> execute(const std::string& command, nlohmann::json arguments = nlohmann::json::object());
  // The same, but waits for the result.
  nlohmann::json run(const std::string& command, nlohmann::json arguments = nlohmann::json::object());

  // Passes QEMU a file for the next migration from or to `fd:NAME`, which works if QEMU is confined: it needs neither a permission to open
  // the file nor a shell. Returns false if the connection cannot pass descriptors, because it uses TCP.
  bool giveFile(const std::string& name, const kj::AutoCloseFd& file);

  // Resolves to the next event since the connection was made, with members "event" and "data"; rejects when QEMU has closed the connection.
  // Only one call at a time.
  kj::Promise<nlohmann::json> nextEvent();

  // Drops events that have arrived and that nobody has waited for.
  void forgetEvents() { events.clear(); }

  // Whether QEMU has closed the connection.
  bool hasEnded() const { return ended.has_value(); }

 private:
  using Reply = kj::Own<kj::PromiseFulfiller<nlohmann::json>>;
  kj::Promise<nlohmann::json> send(const std::string& command, nlohmann::json arguments, int file);  // -1: no file
  void connect();
  kj::Promise<void> read();
  void take(std::string_view line);
  void end(const std::string& why);

  kj::AsyncIoContext& io;
  const std::string address;
  kj::Own<kj::AsyncIoStream> stream;
  kj::AsyncCapabilityStream* passing = nullptr;  // the same stream, if it is a unix socket
  std::string received;                          // the beginning of an incomplete line
  char buffer[4096];
  uint64_t lastCommand = 0;
  std::map<uint64_t, Reply> waiting;  // by the command's number
  kj::PromiseFulfillerPair<nlohmann::json> greeting = kj::newPromiseAndFulfiller<nlohmann::json>();
  std::deque<nlohmann::json> events;
  kj::Maybe<Reply> eventWaiter;
  std::optional<std::string> ended;  // the reason, if it has ended
  kj::Promise<void> writing = kj::READY_NOW;
  kj::Promise<void> reading = nullptr;
};

}  // namespace vgpu::ctl
