// The state directory of one session, held open: the file `owner` (which names the program's process) and the object list, which the
// program writes. It outlives the daemon that made it if the session is suspended; the daemon that resumes the session takes it over from
// the program.
//
// The daemon whose run directory contains a state directory removes it when its program has ended, whichever daemon serves the session by
// then, and even if an earlier daemon made the directory.
//
// A directory that a program passes is verified by its descriptor, not by its name, and nothing is removed by path. Every function does
// disk I/O, so call them through FileWork. Shared, because its users may outlive the session.
#pragma once

#include <kj/common.h>
#include <kj/io.h>
#include <sys/types.h>
#include <time.h>

#include <memory>
#include <string>
#include <vector>

namespace vgpu::daemon {

class StateDirectory {
 public:
  using Shared = std::shared_ptr<const StateDirectory>;

  // Makes FOLDER/ID (0700) for a session of process `owner`. Throws kj::Exception, leaving nothing.
  static Shared make(const std::string& folder, const std::string& id, pid_t owner);

  // The same after an existing directory of the same session has been removed, for which it waits up to 10 s. A directory that still exists
  // after a second, and whose owner is dead, is left by a failed removal: it is removed.
  static Shared makeNext(const std::string& folder, const std::string& id, pid_t owner);

  // The same for a program that is called away from the directory that it had here before, if that still exists.
  static Shared makeAgain(const std::string& folder, const std::string& id, pid_t owner);

  // The directory at `path`; nothing if there is none that adopt() would accept.
  static Shared find(const std::string& path, const std::string& id, pid_t program);

  // Verifies the directory that a program passed for session `id`: owned by our user, 0700, named sessions/ID, with an `owner` file that
  // names this program. `program`: its process, or 0 if we cannot see it (another pid namespace). Throws kj::Exception that says what is
  // wrong.
  static Shared adopt(kj::AutoCloseFd passed, const std::string& id, pid_t program);

  // Connects to the program of session `id`, which waits at `socket`, the reattachSocket() of its state directory; verifies the directory
  // as adopt() does. Throws kj::Exception, of type DISCONNECTED if the program has ended.
  static kj::AutoCloseFd meet(const std::string& socket, const std::string& id);

  // The directories in `folder` that have an `owner`, dead or alive. Removes leftovers of a make() that did not finish before `begun`; call
  // it when nobody else makes directories there.
  static std::vector<Shared> all(const std::string& folder, const timespec& begun);

  StateDirectory(kj::AutoCloseFd directory, std::string path) : directory(kj::mv(directory)), where(std::move(path)) {}
  KJ_DISALLOW_COPY(StateDirectory);

  const std::string& path() const { return where; }
  // The program creates this socket.
  std::string reattachSocket() const;

  // A pidfd of the process that `owner` names, never of a later process with the same pid; nothing if it has ended. Throws kj::Exception if
  // that cannot be determined.
  kj::Maybe<kj::AutoCloseFd> livingOwner() const;

  // Removes the directory with all its content, `owner` last, so that all() finds an interrupted removal. Returns an empty text, or what is
  // left and why.
  std::string remove() const;

 private:
  kj::AutoCloseFd directory;
  std::string where;
};

}  // namespace vgpu::daemon
