// The directory of a suspend, as the daemon holds it: a snapshot::SnapshotTarget that is opened and closed off the event loop, because it
// may be in a network folder that hangs, and the loop serves all connections.
//
// Used in the event loop. After open(), call keep() or discard().
#pragma once

#include <kj/async.h>
#include <kj/io.h>

#include <memory>
#include <optional>
#include <string>

#include "vgpu/snapshot/snapshot-target.h"
#include "tools/common/file-work.h"

namespace vgpu::daemon {

class TargetFolder {
 public:
  explicit TargetFolder(FileWork& files) : files(files) {}

  // Resolves to a descriptor of the directory for the writer. Rejects if the directory cannot be opened.
  kj::Promise<kj::AutoCloseFd> open(std::string path);

  // The snapshot is complete: closes the directory.
  kj::Promise<void> keep() { return end(true); }
  // There is no snapshot: removes the files that were made, once open() has finished.
  kj::Promise<void> discard() { return end(false); }
  // The same once nobody writes there any more.
  static kj::Promise<void> discardAfter(kj::Promise<void> writersEnded, kj::Own<TargetFolder> folder) {
    return writersEnded.then([folder = kj::mv(folder)]() mutable {
      auto cleared = folder->discard();
      return cleared.attach(kj::mv(folder));
    });
  }

 private:
  kj::Promise<void> end(bool keeps);

  FileWork& files;
  // Used by one piece of work at a time.
  std::shared_ptr<std::optional<snapshot::SnapshotTarget>> target =
      std::make_shared<std::optional<snapshot::SnapshotTarget>>();
  kj::ForkedPromise<void> opened = kj::Promise<void>(kj::READY_NOW).fork();
};

}  // namespace vgpu::daemon
