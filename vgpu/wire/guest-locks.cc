#include "vgpu/wire/guest-locks.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>

#include <algorithm>

namespace vgpu {
namespace {

// Offsets beyond the end of any file.
constexpr off_t lockedAt[] = {off_t{1} << 60, off_t{1} << 61};

struct flock lockOf(GuestLocks::Side side, const GuestLocks::Range& range, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = lockedAt[static_cast<int>(side)] + static_cast<off_t>(range.place);
  lock.l_len = static_cast<off_t>(range.bytes);
  return lock;
}

}  // namespace

bool GuestLocks::tryLock(const Range& range) const {
  struct flock wish = lockOf(side, range, F_WRLCK);
  if (fcntl(file, F_OFD_SETLK, &wish) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  KJ_FAIL_SYSCALL("fcntl(F_OFD_SETLK)", errno);
}

void GuestLocks::unlock(const Range& range) const {
  struct flock wish = lockOf(side, range, F_UNLCK);
  KJ_SYSCALL(fcntl(file, F_OFD_SETLK, &wish));
}

std::optional<GuestLocks::Range> GuestLocks::find(int command, const Range& range) const {
  struct flock found = lockOf(side, range, F_WRLCK);
  KJ_SYSCALL(fcntl(file, command, &found));
  if (found.l_type == F_UNLCK) return std::nullopt;
  return Range{static_cast<uint64_t>(found.l_start - lockedAt[static_cast<int>(side)]), static_cast<uint64_t>(found.l_len)};
}

// F_GETLK asks for a lock of the process, with which locks of every open file description conflict, so it finds all of them. Nothing here
// takes locks of that kind.
std::optional<GuestLocks::Range> GuestLocks::findAny(const Range& range) const { return find(F_GETLK, range); }
std::optional<GuestLocks::Range> GuestLocks::findOthers(const Range& range) const { return find(F_OFD_GETLK, range); }

std::vector<GuestLocks::Range> GuestLocks::ours(const Range& range) const {
  std::vector<Range> found;
  collect(range, found);
  return found;
}

// The system may return any one of several locks in the range.
void GuestLocks::collect(const Range& range, std::vector<Range>& found) const {
  if (range.bytes == 0) return;
  auto any = findAny(range);
  if (!any) return;
  const uint64_t begin = std::max(any->place, range.place), end = std::min(any->end(), range.end());
  const Range locked{begin, end - begin};
  collect({range.place, begin - range.place}, found);
  if (!findOthers(locked)) found.push_back(locked);
  collect({end, range.end() - end}, found);
}

}  // namespace vgpu
