// Asks the daemon, on behalf of the work thread, which parts of its pinned memory an operation may use (interface PinnedRoom). Made in the
// event loop, called by the work thread, kept alive by both.
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
  // For the room in a request's parameters; nullptr if there is none.
  template <typename Params>
  static std::shared_ptr<PinnedRelay> of(Params params) {
    return params.hasRoom() ? std::make_shared<PinnedRelay>(params.getRoom()) : nullptr;
  }

  // On the work thread. As in checkpoint::PinnedRoom.
  std::vector<PinnedPlace> place(const DigestKey& key, std::span<const ChunkName> names, bool makesRoom);
  void name(const DigestKey& key, std::span<const ChunkName> names, std::span<const uint64_t> offsets);

  // In the event loop, when the operation has ended, because the capability belongs to the loop.
  void close() { client = nullptr; }

 private:
  control::PinnedRoom::Client& open();

  kj::Maybe<control::PinnedRoom::Client> client;  // used in the event loop only
  kj::Own<const kj::Executor> loop;
};

// The part of `memory` that the operation may use; nothing if either is missing.
std::optional<checkpoint::PinnedRoom> roomIn(std::span<std::byte> memory, std::shared_ptr<PinnedRelay> relay, std::string pool);

}  // namespace vgpu::stub
