// The daemon's run directory: the lock that keeps a second daemon out, the two sockets, and the sessions' state.
//
//   DIR/lock            held as long as the daemon lives
//   DIR/vgpud.sock      vgpuctl and other daemons (interface Node)
//   DIR/session.sock    programs (ToNode, ToSession)
//   DIR/sessions/ID/    one session: `owner` (whose program it is) and the object list, which the program writes
//
// A session's directory outlives the daemon where the session is suspended: its program still uses the object list, and
// the daemon that resumes it takes the directory over.
#pragma once

#include <kj/io.h>

#include <string>

namespace vgpu {

class RunDirectory {
 public:
  // Makes `directory` (0700) where it is not there, locks it, and removes what a dead daemon left: its sockets, and the
  // sessions whose programs have ended. Throws kj::Exception, naming the daemon that has it already.
  explicit RunDirectory(const std::string& directory);
  // Removes the sockets. The lock file stays, unlocked.
  ~RunDirectory();
  KJ_DISALLOW_COPY(RunDirectory);

  const std::string& path() const { return directory; }
  std::string controlSocket() const { return directory + "/vgpud.sock"; }
  std::string sessionSocket() const { return directory + "/session.sock"; }

  // Makes the state directory of a new session of process `owner`, and returns its path.
  std::string makeSession(const std::string& id, pid_t owner);

 private:
  void lock();
  void removeLeftovers();

  std::string directory;
  kj::AutoCloseFd lockFile;
};

// Removes a session's state directory, here or under another daemon's run directory. `path` may come from a program:
// what is not named like the state of session `id`, or has no `owner` file in it, is left alone.
void removeSessionState(const std::string& path, const std::string& id);

}  // namespace vgpu
