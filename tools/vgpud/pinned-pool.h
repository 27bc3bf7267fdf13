// Pinned memory for snapshots: `vgpud --pinned SIZE`.
//
// One memory file, made when the daemon starts and with all its pages, because making and registering them takes longer than
// anything else in a suspend. Each worker inherits it, maps it and registers it with the driver before it is handed out
// (checkpoint/pinned-memory.h); GPUs copy chunks straight into it and out of it. All workers of a daemon belong to its user, so
// they share it; whatever comes back from it is compared with its digest.
//
// What is in it ends with the daemon. Of the event loop's thread.
#pragma once

#include <memory>
#include <string>

#include "tools/vgpud/pinned-chunks.h"
#include "vgpu/base/memory-file.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

class PinnedPool {
 public:
  // Throws kj::Exception if the machine does not have so much memory. 0: there is none.
  explicit PinnedPool(uint64_t bytes);

  bool exists() const { return memory.bytes() > 0; }
  uint64_t bytes() const { return memory.bytes(); }
  int fd() const { return memory.fd(); }
  // Drawn at random: a snapshot that has chunks here, and nowhere else, names it.
  const std::string& id() const { return name; }

  PinnedChunks chunks;

 private:
  MemoryFile memory;
  const std::string name;
};

// What an operation holds, for as long as any of its owners needs it.
using PinnedHold = std::shared_ptr<PinnedChunks::Hold>;

// Interface PinnedRoom for one operation's worker. Of a worker that breaks the rules nothing is believed but what its own hold
// has.
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
