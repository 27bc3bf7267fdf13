#include "tools/vgpud/empty-folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <kj/io.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

namespace vgpu::daemon {
namespace {

// Each takes a descriptor and 32 KiB (opendir(3)).
constexpr unsigned mostOpen = 16;
// Bounds the work if a running program nests folders faster than they are removed.
constexpr unsigned mostRounds = 1 << 16;

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

class Removal {
 public:
  Removal(int top, const std::string& last) : top(top), last(last) {}

  std::string run() {
    for (unsigned round = 0; round < mostRounds; ++round) {
      movedUp = false;
      empty(top, 0);
      if (!movedUp || !problem.empty()) break;
    }
    if (problem.empty() && movedUp) problem = "folders are nested faster than they are removed";
    if (problem.empty() && unlinkat(top, last.c_str(), 0) < 0 && errno != ENOENT) cannot("remove", last);
    return problem;
  }

 private:
  void cannot(const char* what, std::string_view name) {
    if (problem.empty()) problem = std::string(what) + " " + std::string(name) + ": " + strerror(errno);
  }

  void empty(int folder, unsigned depth) {
    int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    std::unique_ptr<DIR, CloseDirectory> entries(listed < 0 ? nullptr : fdopendir(listed));
    if (entries == nullptr) {
      cannot("list", ".");
      if (listed >= 0) close(listed);
      return;
    }
    while (dirent* entry = readdir(entries.get())) {
      std::string_view name = entry->d_name;
      if (name == "." || name == ".." || (depth == 0 && name == last)) continue;
      if (unlinkat(folder, entry->d_name, 0) == 0 || errno == ENOENT) continue;
      if (errno != EISDIR && errno != EPERM) {  // unlink(2) of a folder: EISDIR on Linux, EPERM by POSIX
        cannot("remove", name);
      } else if (depth + 1 < mostOpen) {
        removeFolder(folder, entry->d_name, depth);
      } else {
        moveUp(folder, entry->d_name);
      }
    }
  }

  void removeFolder(int folder, const char* name, unsigned depth) {
    kj::AutoCloseFd inner(openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (inner.get() < 0) return cannot("open", name);
    empty(inner, depth + 1);
    if (unlinkat(folder, name, AT_REMOVEDIR) < 0 && errno != ENOENT) cannot("remove", name);
  }

  // Moves a deeply nested folder to the top, where the next round finds it.
  void moveUp(int folder, const char* name) {
    std::string there;
    do {
      there = ".removed-" + std::to_string(number++);
    } while (faccessat(top, there.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    if (renameat(folder, name, top, there.c_str()) < 0) return cannot("move", name);
    movedUp = true;
  }

  const int top;
  const std::string& last;
  unsigned number = 0;
  bool movedUp = false;
  std::string problem;
};

}  // namespace

std::string emptyFolder(int folder, const std::string& last) { return Removal(folder, last).run(); }

}  // namespace vgpu::daemon
