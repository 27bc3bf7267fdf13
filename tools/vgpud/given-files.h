// The files that a program has given its session's workers, which map their memory: memory of the host that several processes have
// (docs/ipc.md). By names that the program has chosen.
//
// Owned by the daemon's Session, and by what serves its worker (exchange.h). Everything runs in the daemon's event loop. Nothing of it
// survives a suspend: the program gives its files again to the daemon that resumes it.
#pragma once

#include <kj/async-io.h>
#include <kj/io.h>

#include <map>
#include <memory>

#include "tools/vgpud/shared-name.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

class GivenFiles : public std::enable_shared_from_this<GivenFiles> {
 public:
  using Shared = std::shared_ptr<GivenFiles>;
  // Of one session: a descriptor each, and a program is not trusted.
  static constexpr size_t most = control::MOST_FILES;

  explicit GivenFiles(kj::Timer& timer) : timer(timer) {}
  KJ_DISALLOW_COPY(GivenFiles);

  // In place of what had the name before. Throws kj::Exception if there are too many.
  void put(const SharedName& name, kj::AutoCloseFd file);
  void remove(const SharedName& name);
  // A descriptor of its own of what has the name. The program gives a file before it sends the frame that names it, but the worker may
  // ask for it first: so it is awaited for a few seconds. Nothing if it does not come.
  kj::Promise<kj::Maybe<kj::AutoCloseFd>> find(const SharedName& name);

 private:
  kj::Timer& timer;
  std::map<SharedName, kj::AutoCloseFd> files;
  std::multimap<SharedName, kj::Own<kj::PromiseFulfiller<void>>> awaited;
};

}  // namespace vgpu::daemon
