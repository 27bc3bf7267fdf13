// What sessions of this node share with each other (docs/ipc.md): for each name, the session that gives an object, the object's
// descriptors, and the sessions that have taken it.
//
// A name is known to those who got it from the program that gives the object. It is found only for sessions of the same user, and only
// while its owner runs. The owner is the session that gives the object, or, for physical memory that this session has released, the
// earliest taker that still has it; that session saves the memory's bytes.
//
// Also passes the files that a program has given to the program's own worker (given-files.h).
//
// Everything runs in the daemon's event loop. What a session gives and takes ends with the session's worker, so nothing of it survives a
// suspend: sessions that share are suspended and resumed together, and their restored workers give and take the same objects again.
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

  // The capability for a session's worker. `group`: the session is being resumed with others.
  control::Exchange::Client serve(const Session& session, kj::Maybe<kj::Own<SharingGroup>> group = nullptr);
  // The worker has left the session.
  void forget(const std::string& session);

  // Which other sessions it shares with at present, as messages: "session abc (name, pid 7) has memory of this one".
  std::vector<std::string> sharedBy(const std::string& session) const;
  // Throws kj::Exception with the reason if a session cannot be moved, or get a snapshot while it runs, because it shares.
  void requireAlone(const std::string& session) const;
  // The same, if it cannot be suspended alone.
  void requireSuspendable(const std::string& session) const;
  // Whether it gives anything, even if no session has taken it.
  bool gives(const std::string& session) const;

  // The session and those that share with it, directly or indirectly. Throws kj::Exception with a message for the person if one of them has
  // an object that no session could give it again after a resume.
  std::set<std::string> groupOf(const std::string& session) const;
  // The names of the objects that it has taken from sessions that have released them, and whose bytes it must save.
  std::vector<Name> inheritedBy(const std::string& session) const;

 private:
  class Server;
  struct Taken {
    unsigned times;  // how many times it has taken the object
    uint64_t since;  // when it first took it, in the order of `opened`
  };
  struct Given {
    std::string session;  // empty: the giver has released it
    uid_t user;
    uint32_t kind;                                // `kind` in SharedObject
    kj::Own<capnp::MallocMessageBuilder> object;  // a SharedObject
    std::vector<kj::AutoCloseFd> parts;
    std::map<std::string, Taken> takers;  // by session
  };
  using All = std::map<Name, Given>;

  static const char* kindOf(const Given& given);
  // The session that gives it, or has inherited it; empty if there is none.
  static std::string ownerOf(const Given& given);
  // The giver has released the object. Physical memory lives as long as any session has it, as natively; objects of other kinds stay valid
  // for sessions that have them, but no further session can take them.
  static void letGo(Given& given);
  // The object that the session may take; nullptr if there is none.
  Given* findFor(const Name& name, const std::string& session, uid_t user, const SharingGroup* group);
  bool isOpenFor(const std::string& owner, const std::string& session, const SharingGroup* group);
  std::string describe(const std::string& session) const;

  Sessions& sessions;
  All all;
  uint64_t opened = 0;
};

}  // namespace vgpu::daemon
