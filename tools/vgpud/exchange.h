// What sessions of this node share with each other (docs/ipc.md): by its name, who gives an object, its descriptors, and who has
// it.
//
// A name is known to whoever got it from the program that gives the object. It is found for sessions of the same user only, and
// while the session that has to do with it runs: the one that gives it, or of physical memory that this one has let go of, the
// one that took it first of those that still have it. That one saves its bytes.
//
// It also hands a worker the files that its own program has given (given-files.h).
//
// Everything runs in the daemon's event loop; what a session gives and has ends with the session's worker, so nothing of it
// survives a suspend: the sessions that share are suspended and resumed together, and their restored workers give and take the
// same again.
#pragma once

#include <capnp/message.h>
#include <kj/io.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/vgpud/shared-name.h"
#include "tools/vgpud/sharing-group.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

class Session;
class Sessions;

class Exchange {
 public:
  using Name = SharedName;

  explicit Exchange(Sessions& sessions) : sessions(sessions) {}

  // For the worker of a session. `group`: it is being resumed with others.
  control::Exchange::Client serve(const Session& session, kj::Maybe<kj::Own<SharingGroup>> group = nullptr);
  // The worker has left the session.
  void forget(const std::string& session);

  // With which other sessions it shares anything now, for a person: "session abc (name, pid 7) has memory of this one".
  std::vector<std::string> sharedBy(const std::string& session) const;
  // Throws kj::Exception that says so, if a session cannot be moved, or have a snapshot made while it runs, because it shares.
  void requireAlone(const std::string& session) const;
  // The same if it cannot be suspended alone.
  void requireSuspendable(const std::string& session) const;
  // Whether it gives anything, also if nobody has it.
  bool gives(const std::string& session) const;

  // The sessions that share with it, directly or not, and itself. Throws kj::Exception, for a person, if one of them has what no
  // session could give it again after a resume.
  std::set<std::string> groupOf(const std::string& session) const;
  // The names of what it has of sessions that have let go of it, and whose bytes are its own to save.
  std::vector<Name> inheritedBy(const std::string& session) const;

 private:
  class Server;
  struct Taken {
    unsigned times;  // how often it has it
    uint64_t since;  // by `opened`
  };
  struct Given {
    std::string session;  // empty: has let go of it
    uid_t user;
    uint32_t kind;                                // of SharedObject
    kj::Own<capnp::MallocMessageBuilder> object;  // a SharedObject
    std::vector<kj::AutoCloseFd> parts;
    std::map<std::string, Taken> takers;  // by session
  };
  using All = std::map<Name, Given>;

  static const char* kindOf(const Given& given);
  // The session that gives it, or has inherited it; empty: none.
  static std::string ownerOf(const Given& given);
  // The session that gives it has let go of it. Physical memory lives as long as somebody has it, as natively; else what others
  // have goes on, and nobody else gets it.
  static void letGo(Given& given);
  // What that session can take; nullptr if there is nothing.
  Given* findFor(const Name& name, const std::string& session, uid_t user, const SharingGroup* group);
  bool isOpenFor(const std::string& owner, const std::string& session, const SharingGroup* group);
  std::string describe(const std::string& session) const;

  Sessions& sessions;
  All all;
  uint64_t opened = 0;
};

}  // namespace vgpu::daemon
