// The program's part of its session, the same whichever daemon serves it: its id, its folder, and the memory that it shares with
// its workers. It sends these to a daemon to identify itself.
//
// Owns the descriptors. It stays in the program over a suspend, and does not change once it is open, but for the state directory
// of a program that was parked (vgpu/control/parked-program.h), and the id of one that is a copy.
#pragma once

#include <kj/io.h>

#include <string>
#include <vector>

#include "intercept/session/control.h"
#include "intercept/session/given-files.h"
#include "vgpu/control/channel.h"

namespace vgpu::client {

class OpenedSession {
 public:
  // Not open yet.
  explicit OpenedSession(const OpenRequest& request);

  // Opens it with the daemon that the request names, and returns the connection; `wake` as ControlChannel's. Throws
  // kj::Exception with the daemon's reason, or that there is no daemon.
  ControlChannel open(int wake);
  // The socket in the state directory on which a daemon reaches the program while it is suspended; only its user can connect.
  kj::AutoCloseFd listen() const;
  // Closes the state directory; opens another one, and takes that id. Throws kj::Exception.
  void leave() { stateFolder = nullptr; }
  void enter(const std::string& directory, const std::string& session);
  // Sends a daemon the session's identity, and, if the session is open, all that its next worker needs, `files` among it.
  void introduce(ControlChannel& channel, const std::vector<GivenFiles::File>& files = {}) const;

  const std::string& id() const { return sessionId; }
  const std::string& directory() const { return stateDirectory; }
  const MemoryFile& segment() const { return segmentFile; }
  const MemoryFile& hostArena() const { return hostArenaFile; }

 private:
  void readAnswer(ControlMessage& answer);

  const OpenRequest request;
  std::string sessionId, stateDirectory;
  kj::AutoCloseFd stateFolder;  // the same folder: a later daemon takes a descriptor, not a path from us
  MemoryFile segmentFile, hostArenaFile;
};

}  // namespace vgpu::client
