// The program's part of its session, independent of the daemon that serves it: its id, its folder, and the memory that it shares with its
// workers. It sends these to a daemon to identify itself.
//
// Owns the descriptors. Stays in the program over a suspend. Does not change once open, except for the state directory of a program that
// was parked (vgpu/control/parked-program.h), and the id of a program that is a copy.
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

  // Opens it with the daemon that the request names, and returns the connection; `wake` is passed to ControlChannel. Throws kj::Exception
  // with the daemon's reason, or if there is no daemon.
  ControlChannel open(int wake);
  // The socket in the state directory on which a daemon reaches the program while it is suspended; only its own user can connect.
  kj::AutoCloseFd listen() const;
  // leave() closes the state directory; enter() opens another one and takes that id. Throws kj::Exception.
  void leave() { stateFolder = nullptr; }
  void enter(const std::string& directory, const std::string& session);
  // Sends a daemon the session's identity and, if the session is open, everything that its next worker needs, including `files`.
  void introduce(ControlChannel& channel, const std::vector<GivenFiles::File>& files = {}) const;

  const std::string& id() const { return sessionId; }
  const std::string& directory() const { return stateDirectory; }
  const MemoryFile& segment() const { return segmentFile; }
  const MemoryFile& hostArena() const { return hostArenaFile; }

 private:
  void readAnswer(ControlMessage& answer);

  const OpenRequest request;
  std::string sessionId, stateDirectory;
  kj::AutoCloseFd stateFolder;  // of the same directory: a later daemon gets the descriptor, not a path
  MemoryFile segmentFile, hostArenaFile;
};

}  // namespace vgpu::client
