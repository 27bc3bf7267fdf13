#include "vgpu/snapshot/snapshot-target.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <ranges>
#include <thread>

#include "vgpu/base/fail.h"
#include "vgpu/snapshot/snapshot-files.h"
#include "vgpu/snapshot/write-progress.h"
#include "vgpu/store/chunk-store.h"
#include "vgpu/store/disk-space.h"

namespace vgpu::snapshot {

namespace {

// The names of the files that a killed save left in the folder. Throws if it holds anything else.
std::vector<std::string> leftIn(const std::string& path) {
  std::error_code error;
  std::vector<std::string> found;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    found.push_back(entry->path().filename());
  if (error) cannotSave("read the snapshot's directory", path, error.value());
  auto isOurs = [](const std::string& name) {
    return name == unfinishedManifest || isPackFile(name) || std::count(std::begin(dataFiles), std::end(dataFiles), name) > 0;
  };
  bool unfinished = std::count(found.begin(), found.end(), unfinishedManifest) > 0;
  auto foreign = unfinished ? std::find_if_not(found.begin(), found.end(), isOurs) : found.begin();
  if (foreign != found.end())
    fail(fmt::format(
        "cannot write a snapshot into {}: it is not empty, it holds {}. Name an empty directory or a new one; "
        "the program goes on",
        path, *foreign));
  return found;
}

// Syncs the parent, so that a directory that was made survives a crash of the machine.
void syncFolderOf(const std::string& path) {
  kj::AutoCloseFd folder(open((path + "/..").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || fsync(folder) != 0) cannotSave("write to the folder that holds the snapshot's directory", path, errno);
}

// A millisecond each: far longer than a collection holds our directory.
constexpr unsigned mostTries = 200;

bool isSame(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

bool isStill(int fd, const std::string& path) {
  struct stat open, named;
  return fstat(fd, &open) == 0 && stat(path.c_str(), &named) == 0 && isSame(open, named);
}

unsigned packsHere() { return std::clamp(std::thread::hardware_concurrency(), 1u, mostPacks); }

std::string packFile(unsigned number) { return fmt::format("pack-{:02}", number); }

bool isPackFile(const std::string& name) {
  for (unsigned pack = 0; pack < mostPacks; ++pack)
    if (name == packFile(pack)) return true;
  return false;
}

void cannotSave(const char* doing, const std::string& path, int error, uint64_t bytes) {
  fail(fmt::format("cannot {} {}: {}. Nothing of the snapshot is left, and the program goes on", doing, path,
                   writeProblem(error, path, bytes)));
}

SnapshotTarget::SnapshotTarget(const std::string& path) : folder(path) {
  for (unsigned tries = 1; !take(tries >= mostTries); ++tries) usleep(1000);
  KJ_ON_SCOPE_FAILURE(discard());  // the destructor does not run if the constructor throws
  takeEmpty();
  if (made) syncFolderOf(folder);
  create(unfinishedManifest);  // first: marks the other files as unfinished
  for (const char* name : dataFiles) create(name);
  if (ChunkStore::around(folder)) return;  // the packs belong to the store
  for (unsigned pack = 0; pack < packsHere(); ++pack) create(packFile(pack));
}

SnapshotTarget::~SnapshotTarget() noexcept {
  if (!kept) discard();
}

// Makes, opens and locks the directory. Returns false if another process holds or has removed it; with `isLast`, throws if it is held or
// missing. Between making and locking it, a collection of the store (`vgpuctl snapshots gc`) may lock it: it locks empty directories while
// it removes them.
//
// The lock belongs to the open file description, so it is held until the writer has closed its copy of the descriptor too, and ends with
// the last holder. We do not remove a directory that another process holds, even if we made it.
bool SnapshotTarget::take(bool isLast) {
  if (mkdir(folder.c_str(), 0700) == 0) made = true;
  else if (errno != EEXIST) cannotSave("make the snapshot's directory", folder, errno);
  int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    int error = errno;
    if (error == ENOENT && !isLast) return false;
    if (made) rmdir(folder.c_str());
    cannotSave("open the snapshot's directory", folder, error);
  }
  directory = kj::AutoCloseFd(fd);
  if (flock(directory, LOCK_EX | LOCK_NB) == 0) return isStill(directory, folder);
  if (errno == EWOULDBLOCK && !isLast) return false;
  if (errno == EWOULDBLOCK)
    fail(fmt::format("cannot write a snapshot into {}: another suspend is writing there. Name another directory; the "
                     "program goes on",
                     folder));
  cannotSave("lock the snapshot's directory", folder, errno);
}

void SnapshotTarget::takeEmpty() {
  auto found = leftIn(folder);
  if (found.empty() && ChunkStore::around(folder)) made = true;  // the name was reserved for this snapshot
  if (made) return;
  struct stat status;
  if (fstat(directory, &status) != 0) cannotSave("inspect the snapshot's directory", folder, errno);
  mode = status.st_mode & 07777;
  if (fchmod(directory, 0700) != 0) cannotSave("set the mode of the snapshot's directory", folder, errno);
  std::ranges::stable_partition(found, [](auto& name) { return name != unfinishedManifest; });
  for (auto& name : found)
    if (unlinkat(directory, name.c_str(), 0) != 0)
      cannotSave("remove an unfinished snapshot's file", folder + "/" + name, errno);
}

void SnapshotTarget::create(const std::string& name) {
  int fd = openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) cannotSave("make the snapshot's file", folder + "/" + name, errno);
  files.push_back({name, kj::AutoCloseFd(fd)});
}

// Whether the manifest is not one of the files made here: the snapshot was in memory and has been written to disk meanwhile, so it is
// complete.
bool SnapshotTarget::isReplaced() const {
  struct stat own, named;
  if (fstatat(directory, manifestFile, &named, AT_SYMLINK_NOFOLLOW) != 0) return false;
  for (auto& file : files)
    if (fstat(file.open, &own) == 0 && isSame(own, named)) return false;
  return true;
}

// Identifies files made here by their inode numbers, which are not reused while the files are open. The manifest may have received its
// final name meanwhile: that name is removed first, and the file last, so that a process killed here leaves an unfinished snapshot.
void SnapshotTarget::discard() {
  unlinkat(directory, writingFile, 0);  // left by a killed writer, even one killed after its last step
  if (isReplaced()) return;
  auto isOurs = [this](const File& file, const char* name) {
    struct stat own, named;
    return fstat(file.open, &own) == 0 && fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && isSame(own, named);
  };
  if (!files.empty() && isOurs(files.front(), manifestFile)) renameat(directory, manifestFile, directory, unfinishedManifest);
  for (auto& file : std::views::reverse(files))
    if (isOurs(file, file.name.c_str())) unlinkat(directory, file.name.c_str(), 0);
  unlinkat(directory, replacingManifest, 0);  // left by a killed writer
  if (made) {
    rmdir(folder.c_str());  // fails if others have put something into it
  } else if (mode != 0) {
    fchmod(directory, mode);
  }
}

}  // namespace vgpu::snapshot
