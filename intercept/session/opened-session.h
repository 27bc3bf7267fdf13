// What a program has of its session, from the first daemon on, whichever daemon serves it: its id, its folder, and the
// memory that it shares with its workers. By these it introduces itself to a daemon.
//
// Owns the descriptors. Nothing of it changes once it is open, and all of it stays in the program over a suspend.
#pragma once

#include <kj/io.h>

#include <string>

#include "intercept/session/control.h"
#include "vgpu/control/channel.h"

namespace vgpu::client {

class OpenedSession {
 public:
  // Not open yet.
  explicit OpenedSession(const OpenRequest& request);

  // Opens it with the daemon that the request names, and returns the connection; `wake` as ControlChannel's. Throws
  // kj::Exception with the daemon's reason, or that there is no daemon.
  ControlChannel open(int wake);
  // The socket in the state directory by which a daemon finds the program while it is suspended: its user's alone to reach.
  kj::AutoCloseFd listen() const;
  // Tells a daemon who is here: of a session that is open with all that its next worker needs.
  void introduce(ControlChannel& channel) const;

  const std::string& id() const { return sessionId; }
  const std::string& directory() const { return stateDirectory; }
  const MemoryFile& segment() const { return segmentFile; }
  const MemoryFile& hostArena() const { return hostArenaFile; }

 private:
  void readAnswer(ControlMessage& answer);

  const OpenRequest request;
  std::string sessionId, stateDirectory;
  kj::AutoCloseFd stateFolder;  // the same: a later daemon takes a descriptor, not our word for a path
  MemoryFile segmentFile, hostArenaFile;
};

}  // namespace vgpu::client
