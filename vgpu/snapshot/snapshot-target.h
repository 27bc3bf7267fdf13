#pragma once

#include <kj/io.h>

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::snapshot {

// Throws kj::Exception, for a person: "cannot `doing` `path`: …". `bytes`: that are left to be written, if that is known.
[[noreturn]] void cannotSave(const char* doing, const std::string& path, int error, uint64_t bytes = 0);

// Whether `path` still names what is open as `fd`. Who has locked a directory asks before it relies on the name.
bool isStill(int fd, const std::string& path);

// Where a snapshot is to be written: a directory held against others from the beginning, with all its files, empty. It
// belongs to who suspends; the writer, in another process, gets the descriptor. Destroyed before keep(), it removes what it
// made, whatever became of the writer, and nothing else.
class SnapshotTarget {
 public:
  // Makes `path`, or takes it where it is an empty directory or holds no more than a snapshot that was never finished.
  // Throws kj::Exception: not empty, read-only, another suspend is writing there, …
  explicit SnapshotTarget(const std::string& path);
  ~SnapshotTarget() noexcept;
  SnapshotTarget(const SnapshotTarget&) = delete;
  SnapshotTarget& operator=(const SnapshotTarget&) = delete;

  int fd() const { return directory; }
  const std::string& path() const { return folder; }
  // There is a snapshot, and its program relies on it.
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
  unsigned mode = 0;  // of a directory that was there
  std::vector<File> files;
};

}  // namespace vgpu::snapshot
