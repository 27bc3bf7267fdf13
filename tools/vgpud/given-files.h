// The files that a program has given its session's workers, which map their memory: host memory that several processes share (docs/ipc.md).
// Identified by names that the program has chosen.
//
// Owned by the daemon's Session, and by the object that serves its worker (exchange.h). Everything runs in the daemon's event loop. Nothing
// survives a suspend: the program gives its files again to the daemon that resumes it.
#pragma once

#include <kj/async-io.h>
#include <kj/io.h>

#include <map>
#include <memory>

#include "tools/common/file-work.h"
#include "tools/vgpud/shared-name.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

// A given file. Its close() runs on another thread, because it may hang: a file system in user space (FUSE) asks a process, which may not
// answer.
class GivenFile {
 public:
  GivenFile(kj::AutoCloseFd file, std::shared_ptr<FileWork> closing) : file(kj::mv(file)), closing(std::move(closing)) {}
  ~GivenFile() noexcept;
  KJ_DISALLOW_COPY(GivenFile);

  int fd() const { return file; }

 private:
  kj::AutoCloseFd file;
  std::shared_ptr<FileWork> closing;
};

class GivenFiles : public std::enable_shared_from_this<GivenFiles> {
 public:
  using Shared = std::shared_ptr<GivenFiles>;
  // Limit per session: each takes a descriptor, and a program is not trusted.
  static constexpr size_t most = control::MOST_FILES;

  explicit GivenFiles(kj::Timer& timer) : timer(timer) {}
  KJ_DISALLOW_COPY(GivenFiles);

  // Replaces the file that had the name. Throws kj::Exception if there are too many files.
  void put(const SharedName& name, kj::AutoCloseFd file);
  void remove(const SharedName& name);
  // Closes a descriptor that nobody has requested.
  void close(kj::AutoCloseFd file) { GivenFile(kj::mv(file), closing); }
  // The file of that name. The program gives a file before it sends the frame that names it, but the worker's request may arrive first, so
  // this waits for a few seconds. Null if the file does not come.
  kj::Promise<std::shared_ptr<const GivenFile>> find(const SharedName& name);

 private:
  kj::Timer& timer;
  std::shared_ptr<FileWork> closing = std::make_shared<FileWork>(1);  // one thread pool per session, because closing a file may hang
  std::map<SharedName, std::shared_ptr<const GivenFile>> files;
  std::multimap<SharedName, kj::Own<kj::PromiseFulfiller<void>>> awaited;
};

}  // namespace vgpu::daemon
