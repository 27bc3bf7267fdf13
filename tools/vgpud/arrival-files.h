// What a session brings from another host besides its GPUs' memory: the files of its snapshot, and the contents of its host arena, which
// holds its pinned memory. Both are sent in pieces by calls (control.capnp, Arrival.put); the files go into a folder of the target's
// daemon.
//
// Used in the event loop; does disk I/O on other threads.
#pragma once

#include <kj/async.h>
#include <kj/io.h>

#include <memory>
#include <string>
#include <utility>

#include "tools/common/file-work.h"
#include "tools/vgpud/changed-pieces.h"
#include "tools/vgpud/passing-folder.h"
#include "tools/vgpud/target-folder.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

// The target's side.
class ArrivalFiles {
 public:
  explicit ArrivalFiles(FileWork& files) : files(files), folder(kj::heap<TargetFolder>(files)) {}

  // Makes FOLDER/NAME, owned by this process, with an empty snapshot in it.
  kj::Promise<void> open(std::string in, std::string name);
  // Rejects a name that is not that of a snapshot's file.
  kj::Promise<void> put(std::string file, uint64_t offset, kj::Array<kj::byte> bytes);
  // Writes the received content of the host arena into `arena`.
  kj::Promise<void> fillArena(int arena);

  // Where the snapshot is.
  std::string path() const { return directory.path() + "/snapshot"; }
  // Removes everything, including what open() is still making. Returns the folder, if it was made, for the caller to remove afterwards.
  kj::Promise<StateDirectory::Shared> discard();

 private:
  FileWork& files;
  kj::Own<TargetFolder> folder;
  PassingFolder directory;
  std::shared_ptr<kj::AutoCloseFd> arena;  // a memory file, sparse
};

// The source's side: sends the files of the snapshot in `folder`, and the content of the host arena. Must outlive the promises.
class DepartingFiles {
 public:
  // `arena`: if it is not a descriptor, the session has no host arena.
  DepartingFiles(FileWork& files, std::string folder, kj::AutoCloseFd arena);

  // While the program runs: sends what has changed in the arena since the last call.
  kj::Promise<void> sendAhead(control::Arrival::Client arrival);
  // The same, and then all files.
  kj::Promise<void> sendRest(control::Arrival::Client arrival);

 private:
  FileWork& files;
  const std::string folder;
  const std::shared_ptr<ChangedPieces> arena;
};

}  // namespace vgpu::daemon
