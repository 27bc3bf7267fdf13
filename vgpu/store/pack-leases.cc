#include "vgpu/store/pack-leases.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "vgpu/base/fail.h"

namespace vgpu {

PackLeases::PackLeases(const std::string& path, bool makes)
    : path(path), file(open(path.c_str(), O_RDWR | (makes ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (file.get() < 0 && errno == ENOENT)
    fail(
        fmt::format("the store's file {} is missing, so nobody knows which packs are in use: make an empty file of that name "
                    "when no program uses the "
                    "store",
                    path));
  if (file.get() < 0) fail(fmt::format("the store's file {} cannot be opened: {}", path, strerror(errno)));
  take(0);  // byte 0 belongs to no pack: fails at once if the file system has no such locks
}

bool PackLeases::take(uint64_t pack) { return lock(F_OFD_SETLK, F_RDLCK, pack); }
bool PackLeases::await(uint64_t pack) { return lock(F_OFD_SETLKW, F_RDLCK, pack); }
bool PackLeases::takeAlone(uint64_t pack) { return lock(F_OFD_SETLK, F_WRLCK, pack); }
void PackLeases::release(uint64_t pack) { lock(F_OFD_SETLK, F_UNLCK, pack); }

bool PackLeases::lock(int command, short type, uint64_t pack) {
  struct flock byte {};
  byte.l_type = type;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(pack);
  byte.l_len = 1;
  while (fcntl(file, command, &byte) != 0) {
    if (errno == EAGAIN || errno == EACCES) return false;
    if (errno != EINTR)
      fail(fmt::format("the store's file {} cannot be locked: {}. A store must be on a file system with locks, such as ext4, xfs or tmpfs",
                       path, strerror(errno)));
  }
  return true;
}

}  // namespace vgpu
