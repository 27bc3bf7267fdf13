// Pinned memory for snapshots: `vgpud --pinned SIZE`.
//
// One memory file, allocated completely when the daemon starts, because allocating and registering pages takes longer than anything else in
// a suspend. Each worker inherits it, maps it and registers it with the driver before it is handed out (checkpoint/pinned-memory.h); GPUs
// copy chunks directly into and out of it. All workers of a daemon belong to its user, so they share it; what is read back from it is
// verified by digest.
//
// Its content is lost when the daemon ends. Used by the event loop's thread.
#pragma once

#include <memory>
#include <string>

#include "tools/vgpud/pinned-chunks.h"
#include "vgpu/base/memory-file.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

class PinnedPool {
 public:
  // Throws kj::Exception if the machine does not have so much memory. 0: no pinned memory.
  explicit PinnedPool(uint64_t bytes);

  bool exists() const { return memory.bytes() > 0; }
  uint64_t bytes() const { return memory.bytes(); }
  int fd() const { return memory.fd(); }
  // A random id: the manifest of a snapshot with chunks only here contains it.
  const std::string& id() const { return name; }

  PinnedChunks chunks;

 private:
  MemoryFile memory;
  const std::string name;
};

// What an operation holds, shared by its owners.
using PinnedHold = std::shared_ptr<PinnedChunks::Hold>;

// Interface PinnedRoom for one operation's worker. The worker is not trusted: its requests only affect its own hold.
class PinnedRoomServer final : public control::PinnedRoom::Server {
 public:
  explicit PinnedRoomServer(PinnedHold hold) : hold(std::move(hold)) {}

 protected:
  kj::Promise<void> place(PlaceContext context) override;
  kj::Promise<void> name(NameContext context) override;

 private:
  PinnedHold hold;
};

}  // namespace vgpu::daemon
