#include <dirent.h>
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

#include "checkpoint/directory.h"
#include "vgpu/wire/fault-point.h"
#include "vgpu/wire/unix-socket.h"

namespace vgpu::checkpoint {

namespace {

constexpr const char* unfinishedManifest = "manifest.json.new";

[[noreturn]] void cannot(const char* doing, const std::string& path, int error) {
  fail(fmt::format("cannot {} {}: {}. Nothing of the snapshot is left, and the program goes on", doing, path,
                   strerror(error)));
}

// Whoever saved here before may have been killed at it: the names of what he left. Throws where there is anything else.
std::vector<std::string> leftIn(const std::string& path) {
  std::error_code error;
  std::vector<std::string> found;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    found.push_back(entry->path().filename());
  if (error) cannot("look into the snapshot's directory", path, error.value());
  auto isOurs = [](const std::string& name) {
    return name == unfinishedManifest || std::count(std::begin(dataFiles), std::end(dataFiles), name) > 0;
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

}  // namespace

void requireFree(const std::string& path) { leftIn(path); }

void FileWriter::write(std::span<const std::byte> bytes) {
  checksum.add(bytes);
  written += bytes.size();
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot("write the snapshot's file", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

FileSum FileWriter::finish() {
  if (fsync(file) != 0) cannot("write the snapshot's file", path, errno);
  file = nullptr;
  return {written, checksum.text()};
}

NewDirectory::NewDirectory(const std::string& path) : path(path) {
  made = mkdir(path.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) cannot("make the snapshot's directory", path, errno);
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    int error = errno;
    if (made) rmdir(path.c_str());
    cannot("open the snapshot's directory", path, error);
  }
  directory = kj::AutoCloseFd(fd);
  KJ_ON_SCOPE_FAILURE(discard());  // a constructor that fails has no destructor
  if (flock(directory, LOCK_EX | LOCK_NB) != 0)
    cannot("lock, as somebody else may write there, the directory", path, errno);
  if (!made) takeEmpty();
  manifest = std::make_unique<FileWriter>(create(unfinishedManifest));
}

// That nobody is at what was left is known by the lock, which ends with its holder.
void NewDirectory::takeEmpty() {
  auto found = leftIn(path);
  struct stat status;
  if (fstat(directory, &status) != 0) cannot("look at the snapshot's directory", path, errno);
  mode = status.st_mode & 07777;
  if (fchmod(directory, 0700) != 0) cannot("make private the snapshot's directory", path, errno);
  for (auto& name : found)
    if (unlinkat(directory, name.c_str(), 0) != 0)
      cannot("remove an unfinished snapshot's file", path + "/" + name, errno);
}

NewDirectory::~NewDirectory() noexcept {
  if (!published) discard();
}

void NewDirectory::discard() {
  for (auto& name : files) unlinkat(directory, name.c_str(), 0);
  if (made) {
    rmdir(path.c_str());
  } else if (mode != 0) {
    fchmod(directory, mode);
  }
}

FileWriter NewDirectory::create(const char* name) {
  std::string whole = path + "/" + name;
  int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) cannot("make the snapshot's file", whole, errno);
  files.push_back(name);
  return FileWriter(kj::AutoCloseFd(fd), whole);
}

FileSum NewDirectory::write(const char* name, std::span<const std::byte> bytes) {
  FileWriter writer = create(name);
  writer.write(bytes);
  return writer.finish();
}

void NewDirectory::publish(const std::string& text) {
  manifest->write(std::as_bytes(std::span(text)));
  manifest->finish();
  faultPoint("suspend.manifest-written");
  if (fsync(directory) != 0) cannot("write the snapshot's directory", path, errno);
  if (renameat(directory, unfinishedManifest, directory, manifestFile) != 0)
    cannot("name the snapshot's manifest in", path, errno);
  files.push_back(manifestFile);
  if (fsync(directory) != 0) cannot("write the snapshot's directory", path, errno);
  published = true;
  faultPoint("suspend.manifest-named");
}

}  // namespace vgpu::checkpoint
