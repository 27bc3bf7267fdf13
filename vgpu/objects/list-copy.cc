#include "vgpu/objects/list-copy.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"

namespace vgpu {

namespace {

// LMDB has two meta pages. A commit writes one of them last, and never overwrites a page that the last commit needs. So if the meta pages
// are equal before and after copying, the copy is the last commit (LMDB, mdb.c: MDB_meta, "double buffering").
constexpr size_t metaBytes = 2 * 4 * KiB;
using Meta = std::array<char, metaBytes>;

constexpr size_t pieceBytes = 1 * MiB;
constexpr int mostTries = 50;
constexpr useconds_t pause = 20'000;  // a recorder commits every 50 ms or so

class Source {
 public:
  Source(const std::string& directory, uint64_t mostBytes) : path(directory + "/objects/data.mdb"), most(mostBytes) {
    kj::AutoCloseFd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    kj::AutoCloseFd objects(folder.get() < 0 ? -1 : openat(folder, "objects", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (objects.get() >= 0) file = kj::AutoCloseFd(openat(objects, "data.mdb", O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() < 0) fail(fmt::format("there is no object list in {}: {}: {}", directory, path, strerror(errno)));
  }

  uint64_t size() const {
    struct stat status;
    if (fstat(file, &status) != 0) fail(fmt::format("the object list {}: {}", path, strerror(errno)));
    if (!S_ISREG(status.st_mode)) fail(fmt::format("the object list {} is not a regular file", path));
    auto bytes = static_cast<uint64_t>(status.st_size);
    if (bytes > most)
      fail(fmt::format("the object list {} is larger than a session's may be: {} bytes, at most {}", path, bytes, most));
    return bytes;
  }

  Meta meta() const {
    Meta read{};
    readAt(0, read.data(), read.size());
    return read;
  }

  void copyTo(int to) const {
    std::vector<char> piece(pieceBytes);
    for (uint64_t at = 0, end = size(); at < end; at += pieceBytes) {
      size_t got = readAt(at, piece.data(), std::min<uint64_t>(pieceBytes, end - at));
      if (pwrite(to, piece.data(), got, static_cast<off_t>(at)) != static_cast<ssize_t>(got))
        fail(fmt::format("the object list {} cannot be copied: {}", path, strerror(errno)));
    }
  }

  const std::string path;

 private:
  size_t readAt(uint64_t at, char* out, size_t bytes) const {
    ssize_t got = pread(file, out, bytes, static_cast<off_t>(at));
    if (got < 0) fail(fmt::format("the object list {} cannot be read: {}", path, strerror(errno)));
    return static_cast<size_t>(got);
  }

  uint64_t most;
  kj::AutoCloseFd file;
};

}  // namespace

kj::AutoCloseFd copyObjectList(const std::string& directory, uint64_t mostBytes) {
  Source source(directory, mostBytes);
  source.size();
  for (int tries = 0; tries < mostTries; ++tries) {
    kj::AutoCloseFd copy(memfd_create("vgpu-object-list", MFD_CLOEXEC));
    if (copy.get() < 0) fail(fmt::format("no memory for a copy of {}: {}", source.path, strerror(errno)));
    Meta before = source.meta();
    source.copyTo(copy);
    if (source.meta() == before) return copy;
    usleep(pause);
  }
  fail(fmt::format("the object list {} changes faster than it can be copied; try again", source.path));
}

}  // namespace vgpu
