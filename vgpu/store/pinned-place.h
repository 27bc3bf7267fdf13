// The structures in which a worker and its daemon exchange places of chunks in pinned memory (interface PinnedRoom of control.capnp):
// arrays of them are sent as raw memory, because both are processes of one machine and one build.
#pragma once

#include <cstdint>

#include "vgpu/store/chunk-index.h"

namespace vgpu {

// Stands for a missing digest: the chunk's bytes are to be copied before they are digested.
constexpr Digest notDigested{~uint64_t{0}, ~uint64_t{0}};

struct PinnedPlace {
  enum class State : uint64_t { none, room, there };  // no room; room for the chunk's bytes; its bytes are present
  uint64_t offset = 0;
  State state = State::none;
};
static_assert(sizeof(ChunkName) == 24 && sizeof(PinnedPlace) == 16);

}  // namespace vgpu
