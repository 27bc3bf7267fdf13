// The daemon's run directory: the lock that keeps a second daemon out, the sockets, and the sessions' state.
//
//   DIR/lock            held as long as the daemon lives
//   DIR/vgpud.sock      vgpuctl and other daemons (interface Node)
//   DIR/session.sock    programs (ToNode, ToSession)
//   DIR/streams.sock    memory of sessions that come from other nodes
//   DIR/sessions/ID/    one session (state-directory.h)
//   DIR/arrived/sessions/ID/   a session that came from another host; the program's own directory may be on this node too
//   DIR/renewals/ID/    the snapshot of a session while it gets a new worker or leaves for another node; with `owner`, as above
//
// A session's directory outlives the daemon if the session is suspended, because its program still uses the object list, and if the daemon
// is killed. The daemon that holds the run directory removes directories whose programs have ended.
#pragma once

#include <kj/io.h>

#include <string>

namespace vgpu::daemon {

class RunDirectory {
 public:
  // Makes `directory` (0700) if it does not exist, locks it, and removes the sockets of an earlier daemon. Throws kj::Exception if others
  // could write there (private-folder.h), and if another daemon holds it, naming that daemon.
  explicit RunDirectory(const std::string& directory);
  // Removes the sockets. The lock file stays, unlocked.
  ~RunDirectory();
  KJ_DISALLOW_COPY(RunDirectory);

  const std::string& path() const { return directory; }
  std::string controlSocket() const { return directory + "/vgpud.sock"; }
  std::string sessionSocket() const { return directory + "/session.sock"; }
  std::string streamSocket() const { return directory + "/streams.sock"; }
  std::string sessions() const { return directory + "/sessions"; }
  std::string arrived() const { return directory + "/arrived/sessions"; }
  std::string renewals() const { return directory + "/renewals"; }

 private:
  void lock();

  std::string directory;
  kj::AutoCloseFd lockFile;
};

}  // namespace vgpu::daemon
