// Decides whether to compress a chunk before it is written, and decompresses.
//
// The writing thread is the bottleneck unless the disk is slower. So a chunk is compressed only if a sample of it shrinks so well that
// compressing is faster than writing to memory, or if, by the times measured so far, compressing the chunk at the sample's ratio and
// writing the result takes less time than writing the chunk uncompressed. Used by one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "vgpu/snapshot/chunk.h"

struct ZSTD_CCtx_s;

namespace vgpu::snapshot {

class Packer {
 public:
  Packer();
  ~Packer();
  Packer(Packer&&) noexcept;

  struct Packed {
    Form form;
    std::span<const std::byte> bytes;  // the chunk's own, or a buffer of this object that is valid until the next call
  };
  Packed pack(std::span<const std::byte> chunk);
  // Writing `bytes` took `seconds`.
  void noteWritten(size_t bytes, double seconds);

 private:
  double sampledShare(std::span<const std::byte> chunk);

  ZSTD_CCtx_s* context;
  std::vector<std::byte> room;  // allocated when a chunk is first compressed
  double writeSeconds = 0;      // per byte, a moving average; 0: not known
  double packSeconds;
};

// How many bytes unpack() makes of `packed`; 0 if that is unknown or more than a chunk's size.
size_t unpackedBytes(Form form, std::span<const std::byte> packed);
// Decompresses a chunk's bytes from a pack into `chunk`. Returns false if they do not yield exactly this size.
bool unpack(Form form, std::span<const std::byte> packed, std::span<std::byte> chunk);

}  // namespace vgpu::snapshot
