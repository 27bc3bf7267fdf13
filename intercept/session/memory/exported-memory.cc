#include "intercept/session/memory/exported-memory.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

namespace vgpu::client {

namespace {

std::optional<ino_t> inodeOf(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
  return status.st_ino;
}

}  // namespace

std::optional<ExportedMemory> ExportedMemory::make(int& descriptor) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  descriptor = ends[1];
  return ExportedMemory(ends[0], inodeOf(ends[1]).value_or(0));
}

ExportedMemory::~ExportedMemory() {
  if (ours >= 0) close(ours);
}

bool ExportedMemory::isOpen() const {
  pollfd end{ours, POLLIN, 0};
  return poll(&end, 1, 0) == 0 || (end.revents & POLLHUP) == 0;
}

bool ExportedMemory::is(int descriptor) const { return inode != 0 && inodeOf(descriptor) == inode; }

}  // namespace vgpu::client
