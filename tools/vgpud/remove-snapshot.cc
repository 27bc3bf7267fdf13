#include "tools/vgpud/remove-snapshot.h"

#include <fcntl.h>
#include <kj/exception.h>
#include <kj/io.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "tools/vgpud/empty-folder.h"
#include "vgpu/snapshot/manifest.h"

namespace vgpu::daemon {

void removeSnapshotOf(const std::string& id, const std::string& directory) {
  kj::AutoCloseFd held(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (held.get() < 0 || flock(held, LOCK_EX | LOCK_NB) != 0) return;
  bool isIts = false;
  kj::runCatchingExceptions([&] { isIts = snapshot::readHeader(snapshot::SnapshotReader(directory)).identity.session == id; });
  if (!isIts || renameat(held, snapshot::manifestFile, held, snapshot::unfinishedManifest) != 0) return;
  emptyFolder(held, snapshot::unfinishedManifest);
  rmdir(directory.c_str());
}

}  // namespace vgpu::daemon
