// A chunk of the files `bytes` and `blobs`: at most 2 MiB, with a header that says its form and the checksum of its bytes
// (docs/snapshot.md). A chunk of zeros takes a header only. Any thread may pack and unpack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vgpu/snapshot/snapshot-reader.h"
#include "vgpu/snapshot/snapshot-writer.h"

namespace vgpu::snapshot {

constexpr size_t chunkBytes = size_t{2} << 20;

enum class Form : uint32_t { zero, plain, zstd };

struct Chunk {
  uint64_t index = 0;
  std::byte* raw = nullptr;  // chunkBytes
  size_t rawBytes = 0;
  std::span<std::byte> packed;  // as much as a chunk can take on disk
  size_t packedBytes = 0;
  Form form = Form::plain;
  uint64_t checksum = 0;  // of the raw bytes
};

// How many bytes a chunk can take on disk, besides its header.
size_t packedMost();

// Finds form, checksum and packed bytes of the raw ones.
void pack(Chunk& chunk);
void writeChunk(FileWriter& file, const Chunk& chunk);

// Reads a chunk of `bytes` raw bytes, whose index is `chunk.index`, and makes its raw bytes of the packed ones. Throw
// kj::Exception that names the file, the chunk and the check.
void readChunk(FileReader& file, size_t bytes, Chunk& chunk);
void unpack(const FileReader& file, Chunk& chunk);

}  // namespace vgpu::snapshot
