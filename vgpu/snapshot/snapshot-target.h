#pragma once

#include <kj/io.h>

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::snapshot {

// Throws kj::Exception with the message "cannot `doing` `path`: …". `bytes`: how many are still to be written, if known.
[[noreturn]] void cannotSave(const char* doing, const std::string& path, int error, uint64_t bytes = 0);

// Whether `path` still names the file or directory open as `fd`. After locking a directory, callers check this before they rely on its
// name.
bool isStill(int fd, const std::string& path);

// The place where a snapshot is to be written: a directory, locked from the beginning, with all of its files, still empty. The process that
// suspends owns it; the writer, in another process, gets the descriptor. If it is destroyed before keep(), it removes exactly the files
// that it made, even if the writer was killed.
class SnapshotTarget {
 public:
  // Makes `path`, or uses an existing directory that is empty or holds only an unfinished snapshot. Throws kj::Exception: not empty,
  // read-only, another suspend is writing there, …
  explicit SnapshotTarget(const std::string& path);
  ~SnapshotTarget() noexcept;
  SnapshotTarget(const SnapshotTarget&) = delete;
  SnapshotTarget& operator=(const SnapshotTarget&) = delete;

  int fd() const { return directory; }
  const std::string& path() const { return folder; }
  // The snapshot is complete and its program relies on it: it is not removed.
  void keep() { kept = true; }

 private:
  struct File {
    std::string name;
    kj::AutoCloseFd open;
  };
  bool take(bool isLast);
  void takeEmpty();
  void create(const std::string& name);
  bool isReplaced() const;
  void discard();

  const std::string folder;
  kj::AutoCloseFd directory;
  bool made = false, kept = false;
  unsigned mode = 0;  // of a directory that existed before
  std::vector<File> files;
};

}  // namespace vgpu::snapshot
