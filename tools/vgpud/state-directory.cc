#include "tools/vgpud/state-directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tools/vgpud/empty-folder.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;
constexpr const char* ownerFile = "owner";
constexpr const char* newOwnerFile = "owner.new";
constexpr const char* parentFolder = "sessions";
constexpr int folderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Field 22 of /proc/PID/stat: with it, a pid identifies one process for ever. Empty if there is no such process.
std::string startTime(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text, field;
  std::getline(file, text);
  size_t end = text.rfind(')');  // the process name in front of it may contain any character
  if (end == std::string::npos) return "";
  std::istringstream fields(text.substr(end + 1));
  for (int i = 3; i <= 22; ++i) fields >> field;
  return field;
}

struct Owner {
  pid_t pid = 0;
  std::string started;

  bool lives() const { return pid > 0 && !started.empty() && startTime(pid) == started; }
};

// Nothing if there is no plain file of that name.
kj::Maybe<Owner> readOwner(int directory) {
  kj::AutoCloseFd file(openat(directory, ownerFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (file.get() < 0 || fstat(file, &status) < 0 || !S_ISREG(status.st_mode)) return nullptr;
  char text[64] = {};
  if (read(file, text, sizeof(text) - 1) < 0) return nullptr;
  Owner owner;
  std::istringstream(text) >> owner.pid >> owner.started;
  return owner;
}

// The file gets its name only when it is complete, because a directory whose owner cannot be read belongs to nobody.
bool writeOwner(int directory, const std::string& text) {
  kj::AutoCloseFd file(openat(directory, newOwnerFile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return file.get() >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
         renameat(directory, newOwnerFile, directory, ownerFile) == 0;
}

std::string pathOf(int directory) {
  std::error_code error;
  return fs::read_symlink(fmt::format("/proc/self/fd/{}", directory), error).string();
}

bool leadsTo(const std::string& path, const struct stat& wanted) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino;
}

// Why the directory at `path` is not the state of session `id`; empty if it is.
std::string flaw(int directory, const std::string& path, const std::string& id, pid_t program) {
  struct stat status;
  if (fstat(directory, &status) < 0) return strerror(errno);
  if (!S_ISDIR(status.st_mode)) return "it is not a directory";
  if (status.st_uid != geteuid()) return fmt::format("it belongs to user {}", status.st_uid);
  if ((status.st_mode & 0777) != 0700) return fmt::format("its mode is {:03o}", status.st_mode & 0777);
  fs::path named(path);
  if (!named.is_absolute() || named.filename() != id || named.parent_path().filename() != parentFolder) {
    return "its path is not that of a state directory";
  }
  if (!leadsTo(path, status)) return "it was removed, or this vgpud cannot see it";
  KJ_IF_MAYBE (owner, readOwner(directory)) {
    bool fits = program > 0 ? owner->pid == program && owner->lives() : owner->pid > 0;
    return fits ? "" : "it belongs to another program";
  }
  return "it has no owner";
}

// An earlier removal found new files in the directory and left it, and it has no owner to trigger another removal.
void removeLeft(const std::string& path) {
  kj::AutoCloseFd directory(open(path.c_str(), folderFlags));
  if (directory.get() < 0) return;
  KJ_IF_MAYBE (owner, readOwner(directory)) {
    if (owner->lives()) return;
  }
  StateDirectory(kj::mv(directory), path).remove();
}

}  // namespace

StateDirectory::Shared StateDirectory::make(const std::string& folder, const std::string& id, pid_t owner) {
  std::string path = folder + "/" + id;
  auto cannot = [&](int error) {
    fail(fmt::format("cannot make the session's state directory {}: {}{}", path, strerror(error),
                     error == ENOSPC ? " (the disk is full)" : ""));
  };
  if (mkdir(path.c_str(), 0700) < 0) cannot(errno);
  kj::AutoCloseFd directory(open(path.c_str(), folderFlags));
  if (directory.get() < 0 || !writeOwner(directory, fmt::format("{} {}\n", owner, startTime(owner)))) {
    int error = errno;
    unlink((path + "/" + newOwnerFile).c_str());
    rmdir(path.c_str());
    cannot(error);
  }
  return std::make_shared<const StateDirectory>(kj::mv(directory), path);
}

StateDirectory::Shared StateDirectory::makeNext(const std::string& folder, const std::string& id, pid_t owner) {
  using namespace std::chrono;
  const std::string path = folder + "/" + id;
  const auto begun = steady_clock::now();
  for (steady_clock::duration waited{}; fs::exists(path) && waited < 10s; waited = steady_clock::now() - begun) {
    std::this_thread::sleep_for(5ms);
    if (waited > 1s) removeLeft(path);
  }
  return make(folder, id, owner);
}

StateDirectory::Shared StateDirectory::makeAgain(const std::string& folder, const std::string& id, pid_t owner) {
  const std::string path = folder + "/" + id;
  if (auto former = find(path, id, owner)) former->remove();
  return makeNext(folder, id, owner);
}

StateDirectory::Shared StateDirectory::find(const std::string& path, const std::string& id, pid_t program) {
  kj::AutoCloseFd directory(open(path.c_str(), folderFlags));
  if (directory.get() < 0 || !flaw(directory, path, id, program).empty()) return nullptr;
  return std::make_shared<const StateDirectory>(kj::mv(directory), path);
}

StateDirectory::Shared StateDirectory::adopt(kj::AutoCloseFd passed, const std::string& id, pid_t program) {
  std::string path = pathOf(passed);
  std::string problem = flaw(passed, path, id, program);
  // The passed descriptor may be O_PATH.
  kj::AutoCloseFd directory(problem.empty() ? openat(passed, ".", folderFlags) : -1);
  if (problem.empty() && directory.get() < 0) problem = strerror(errno);
  if (!problem.empty()) {
    fail(fmt::format("the program sent {}, which is not the state directory of session {}: {}", path, id, problem));
  }
  return std::make_shared<const StateDirectory>(kj::mv(directory), path);
}

std::string StateDirectory::reattachSocket() const { return where + "/" + reattachSocketName; }

kj::AutoCloseFd StateDirectory::meet(const std::string& socket, const std::string& id) {
  fs::path place(socket);
  std::string path = place.parent_path().string(), name = reattachSocketName;
  if (place.filename() != name) fail(socket + " is not the directory of a waiting program: its name is not " + name);
  kj::AutoCloseFd directory(open(path.c_str(), folderFlags));
  if (directory.get() < 0 && errno == ENOENT) {
    kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "the state directory is gone", path.c_str()));
  }
  std::string problem = directory.get() < 0 ? strerror(errno) : flaw(directory, path, id, 0);
  if (!problem.empty()) fail(fmt::format("{} is not the state directory of session {}: {}", path, id, problem));
  return connectUnix(fmt::format("/proc/self/fd/{}/{}", directory.get(), name));
}

std::vector<StateDirectory::Shared> StateDirectory::all(const std::string& folder, const timespec& begun) {
  std::vector<Shared> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    kj::AutoCloseFd directory(open(entry->path().c_str(), folderFlags));
    struct stat status;
    if (directory.get() < 0 || fstat(directory, &status) < 0) continue;
    if (readOwner(directory) == nullptr) {
      const bool isOld = std::pair(status.st_ctim.tv_sec, status.st_ctim.tv_nsec) < std::pair(begun.tv_sec, begun.tv_nsec);
      if (isOld && (unlinkat(directory, newOwnerFile, 0) == 0 || errno == ENOENT)) rmdir(entry->path().c_str());  // fails unless empty
      continue;
    }
    found.push_back(std::make_shared<const StateDirectory>(kj::mv(directory), entry->path()));
  }
  return found;
}

kj::Maybe<kj::AutoCloseFd> StateDirectory::livingOwner() const {
  KJ_IF_MAYBE (owner, readOwner(directory)) {
    if (owner->pid <= 0) return nullptr;
    kj::AutoCloseFd process(static_cast<int>(syscall(SYS_pidfd_open, owner->pid, 0)));  // sets close-on-exec
    if (process.get() < 0 && errno != ESRCH) {
      fail(fmt::format("cannot watch process {}, whose state is {}: {}", owner->pid, where, strerror(errno)));
    }
    if (process.get() >= 0 && owner->lives()) return kj::mv(process);  // in this order: the pidfd is that of the living process
  }
  return nullptr;
}

// In several rounds, because a program that has closed its connection may still write its object list for a moment.
std::string StateDirectory::remove() const {
  constexpr int mostRounds = 10;
  std::string problem;
  for (int round = 0; round < mostRounds; ++round) {
    problem = emptyFolder(directory, ownerFile);
    struct stat status;
    const bool isThere = problem.empty() && fstat(directory, &status) == 0 && leadsTo(where, status);
    if (!isThere || rmdir(where.c_str()) == 0 || errno == ENOENT) break;  // the daemon that serves the session may have removed it
    problem = strerror(errno);
    if (errno != ENOTEMPTY) break;
  }
  return problem.empty() ? "" : fmt::format("{} cannot be removed: {}", where, problem);
}

}  // namespace vgpu::daemon
