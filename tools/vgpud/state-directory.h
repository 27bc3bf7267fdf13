// The state directory of one session, held open: `owner` (whose program it is) and the object list, which the program
// writes. It outlives the daemon that made it if the session is suspended; the daemon that resumes the session takes it
// over from the program.
//
// The daemon of the run directory that a state directory lies in removes it when its program has ended, whichever daemon serves
// the session by then, and even if an earlier daemon made the directory.
//
// A directory that a program passes is checked itself, not by its name, and nothing is removed by a path. Every function waits
// for the disk, so they are for FileWork. Shared, because its users may outlive the session.
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

  // Makes FOLDER/ID (0700) for a session of process `owner`. Throws kj::Exception; nothing is left then.
  static Shared make(const std::string& folder, const std::string& id, pid_t owner);

  // The same, when one of the same session that is there already has been removed: for that it waits for up to 10 s. One that is still
  // there after a second, and whose owner does not live, is a removal's that failed: it is removed.
  static Shared makeNext(const std::string& folder, const std::string& id, pid_t owner);

  // The same for a program that is called away from what it has had here before, if that is still there.
  static Shared makeAgain(const std::string& folder, const std::string& id, pid_t owner);

  // The one at `path`; nothing if there is none that adopt() would take.
  static Shared find(const std::string& path, const std::string& id, pid_t program);

  // Checks the directory that a program passed for session `id`: of our own user, 0700, named sessions/ID, with an `owner` file
  // that names this program. `program`: its process, or 0 if we cannot see it (another pid namespace). Throws kj::Exception that
  // says what it is instead.
  static Shared adopt(kj::AutoCloseFd passed, const std::string& id, pid_t program);

  // Connects to the program of session `id`, which waits at `socket`, reattachSocket() of its state directory; the directory is
  // checked as by adopt(). Throws kj::Exception, of type DISCONNECTED if the program has ended.
  static kj::AutoCloseFd meet(const std::string& socket, const std::string& id);

  // Those in `folder` that have an `owner`, whether or not it lives. Removes what a make() has left that did not come to its end
  // before `begun`, when nobody else makes any.
  static std::vector<Shared> all(const std::string& folder, const timespec& begun);

  StateDirectory(kj::AutoCloseFd directory, std::string path) : directory(kj::mv(directory)), where(std::move(path)) {}
  KJ_DISALLOW_COPY(StateDirectory);

  const std::string& path() const { return where; }
  // Made by the program.
  std::string reattachSocket() const;

  // A pidfd of the process that `owner` names, and of no later one of the same pid; nothing if that has ended. Throws
  // kj::Exception if that cannot be determined.
  kj::Maybe<kj::AutoCloseFd> livingOwner() const;

  // Removes it with all its content, `owner` last, so that all() finds an interrupted removal. Returns an empty text; else what
  // stays, and why.
  std::string remove() const;

 private:
  kj::AutoCloseFd directory;
  std::string where;
};

}  // namespace vgpu::daemon
