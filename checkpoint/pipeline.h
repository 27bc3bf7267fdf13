// Chunks of bytes on their way between device and disk: one stage makes them in order, several threads transform them,
// one stage takes them in order. So the link, the processors and the disk work at the same time.
//
// Owns its threads and the buffers, which are pinned where the driver agrees. A chunk belongs to the stage that it is
// in. An exception in any stage stops all of them and comes out of run().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "stub/driver/driver.h"
#include "vgpu/snapshot/chunk.h"

namespace vgpu::checkpoint {

using namespace snapshot;

class Pipeline {
 public:
  // `driver` pins the buffers; nullptr if no device is involved. Throws kj::Exception if there is no memory for them.
  explicit Pipeline(const stub::Driver* driver);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  struct Stages {
    std::function<bool(Chunk&)> produce;    // false: there was nothing more
    std::function<void(Chunk&)> transform;  // on several threads
    std::function<void(Chunk&)> consume;
  };
  // Which of the ordered stages stays on the calling thread, whose device context it needs.
  enum class Here { produce, consume };
  void run(const Stages& stages, Here here);

 private:
  struct Run;
  size_t pinnedBytes() const { return chunks.size() * chunkBytes; }
  size_t bytes() const { return pinnedBytes() + chunks.size() * packedMost(); }

  const stub::Driver* driver;
  std::byte* memory = nullptr;  // one mapping: every chunk's raw bytes, then every chunk's packed ones
  bool pinned = false;
  unsigned threads;
  std::vector<Chunk> chunks;
};

}  // namespace vgpu::checkpoint
