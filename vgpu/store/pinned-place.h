// How a worker and its daemon speak of chunks in pinned memory (interface PinnedRoom of control.capnp): arrays of these, as they
// lie in memory, because both are processes of one machine and one build.
#pragma once

#include <cstdint>

#include "vgpu/store/chunk-index.h"

namespace vgpu {

// A digest that is none: of a chunk whose bytes are to be copied before they are digested.
constexpr Digest notDigested{~uint64_t{0}, ~uint64_t{0}};

struct PinnedPlace {
  enum class State : uint64_t { none, room, there };  // no room; room for its bytes; its bytes are there
  uint64_t offset = 0;
  State state = State::none;
};
static_assert(sizeof(ChunkName) == 24 && sizeof(PinnedPlace) == 16);

}  // namespace vgpu
