// What a session brings from another host beside the memory of its GPUs: the files of its snapshot, and the contents of its host
// arena, where pinned memory is. Both go in pieces of calls (control.capnp, Arrival.put), the first into a folder of the
// target's.
//
// Used in the event loop; waits for the disk off it.
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

// At the target.
class ArrivalFiles {
 public:
  explicit ArrivalFiles(FileWork& files) : files(files), folder(kj::heap<TargetFolder>(files)) {}

  // Makes FOLDER/NAME, of this process, and an empty snapshot in it.
  kj::Promise<void> open(std::string in, std::string name);
  // Rejects a name that no file of a snapshot has.
  kj::Promise<void> put(std::string file, uint64_t offset, kj::Array<kj::byte> bytes);
  // Writes what came of the host arena into `arena`.
  kj::Promise<void> fillArena(int arena);

  // Where the snapshot is.
  std::string path() const { return directory.path() + "/snapshot"; }
  // Removes all of it, also of what open() is still making. Returns what was made and is to be removed after that.
  kj::Promise<StateDirectory::Shared> discard();

 private:
  FileWork& files;
  kj::Own<TargetFolder> folder;
  PassingFolder directory;
  std::shared_ptr<kj::AutoCloseFd> arena;  // a memory file, sparse
};

// At the source: sends the files of the snapshot in `folder`, and what the host arena holds. Outlives the promises.
class DepartingFiles {
 public:
  // `arena`: if that is no descriptor, there is none.
  DepartingFiles(FileWork& files, std::string folder, kj::AutoCloseFd arena);

  // While the program runs: what has changed in the arena since the last time.
  kj::Promise<void> sendAhead(control::Arrival::Client arrival);
  // The same, and all files.
  kj::Promise<void> sendRest(control::Arrival::Client arrival);

 private:
  FileWork& files;
  const std::string folder;
  const std::shared_ptr<ChangedPieces> arena;
};

}  // namespace vgpu::daemon
