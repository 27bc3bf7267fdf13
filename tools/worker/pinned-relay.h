// Asks the daemon, from the work thread, what of its pinned memory an operation may use (interface PinnedRoom). Made in the event
// loop, called by the working thread, kept alive by both.
#pragma once

#include <kj/async.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/pinned-memory.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::stub {

class PinnedRelay {
 public:
  explicit PinnedRelay(control::PinnedRoom::Client room);
  // That of a request's parameters; nullptr if it has none.
  template <typename Params>
  static std::shared_ptr<PinnedRelay> of(Params params) {
    return params.hasRoom() ? std::make_shared<PinnedRelay>(params.getRoom()) : nullptr;
  }

  // On the working thread. As in checkpoint::PinnedRoom.
  std::vector<PinnedPlace> place(const DigestKey& key, std::span<const ChunkName> names, bool makesRoom);
  void name(const DigestKey& key, std::span<const ChunkName> names, std::span<const uint64_t> offsets);

  // In the event loop, when the operation has ended: the capability belongs to the loop.
  void close() { client = nullptr; }

 private:
  control::PinnedRoom::Client& open();

  kj::Maybe<control::PinnedRoom::Client> client;  // touched in the event loop only
  kj::Own<const kj::Executor> loop;
};

// What the operation may use of `memory`; nothing without either.
std::optional<checkpoint::PinnedRoom> roomIn(std::span<std::byte> memory, std::shared_ptr<PinnedRelay> relay, std::string pool);

}  // namespace vgpu::stub
