// Whether a chunk is compressed before it is written, and back.
//
// The writer is the slower side unless the disk is: so a chunk is compressed only if a sample of it shrinks so well that compressing
// is faster than writing to memory, or if, by the times measured so far, compressing what shrinks as the sample does and writing
// the rest takes less time than writing it all. Of one thread.
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
    std::span<const std::byte> bytes;  // the chunk's own, or this object's until the next call
  };
  Packed pack(std::span<const std::byte> chunk);
  // `bytes` took so long to write.
  void noteWritten(size_t bytes, double seconds);

 private:
  double sampledShare(std::span<const std::byte> chunk);

  ZSTD_CCtx_s* context;
  std::vector<std::byte> room;  // taken when something is first compressed
  double writeSeconds = 0;      // a byte, on the average of late; 0: not known
  double packSeconds;
};

// How many bytes unpack() makes of them; 0 if that is not to be seen, or more than a chunk has.
size_t unpackedBytes(Form form, std::span<const std::byte> packed);
// Makes `chunk` of the bytes that a pack has. False if they do not make one of this size.
bool unpack(Form form, std::span<const std::byte> packed, std::span<std::byte> chunk);

}  // namespace vgpu::snapshot
