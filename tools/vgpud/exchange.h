// What sessions of this node share with each other (docs/ipc.md): by its name, who gives an object, its descriptors, and who has
// it.
//
// A name is known to whoever got it from the program that gives the object. It is found for sessions of the same user only, and
// while the giving session runs. Everything runs in the daemon's event loop; what a session gives and has ends with the session's
// worker, so nothing of it survives a suspend: the restored worker gives the same again.
#pragma once

#include <capnp/message.h>
#include <kj/io.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

class Session;
class Sessions;

class Exchange {
 public:
  explicit Exchange(Sessions& sessions) : sessions(sessions) {}

  // For the worker of a session.
  control::Exchange::Client serve(const Session& session);
  // The worker has left the session.
  void forget(const std::string& session);

  // With which other sessions it shares anything now, for a person: "session abc (name, pid 7) has memory of this one".
  std::vector<std::string> sharedBy(const std::string& session) const;
  // Throws kj::Exception that says so, if a session cannot be suspended because it shares.
  void requireAlone(const std::string& session) const;

 private:
  class Server;
  using Name = std::array<kj::byte, 16>;
  struct Given {
    std::string session;
    uid_t user;
    bool isMemory;                                // or an event
    kj::Own<capnp::MallocMessageBuilder> object;  // a SharedObject
    std::vector<kj::AutoCloseFd> parts;
    std::map<std::string, unsigned> takers;  // sessions, and how often each has it
  };
  static Name nameIn(capnp::Data::Reader data);  // throws kj::Exception if it is none
  // What that session can take; nullptr if there is nothing.
  Given* findFor(const Name& name, const std::string& session, uid_t user);
  std::string describe(const std::string& session) const;

  Sessions& sessions;
  std::map<Name, Given> all;
};

}  // namespace vgpu::daemon
