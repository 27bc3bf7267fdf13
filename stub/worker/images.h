// What a worker has for module images apart from its session's own: where the node keeps them, and where they are
// counted.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu::stub {

class ImageStore;

// How the images of a worker's session came to it. In memory that its daemon reads: written by the working thread, read
// by anybody at any time.
struct ImageCounters {
  std::atomic<uint64_t> sent, sentBytes;    // by the program
  std::atomic<uint64_t> found, foundBytes;  // in the store
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct Images {
  ImageStore* store = nullptr;        // null: none are kept
  ImageCounters* counters = nullptr;  // null: nobody asks
};

}  // namespace vgpu::stub
