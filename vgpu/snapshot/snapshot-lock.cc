#include "vgpu/snapshot/snapshot-lock.h"

#include <fcntl.h>
#include <kj/io.h>
#include <sys/file.h>

#include <cerrno>

namespace vgpu::snapshot {

bool isHeld(const std::string& directory) {
  kj::AutoCloseFd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return folder.get() >= 0 && flock(folder, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace vgpu::snapshot
