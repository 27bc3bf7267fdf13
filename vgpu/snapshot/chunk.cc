#include "vgpu/snapshot/chunk.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <xxhash.h>
#include <zstd.h>

#include <bit>
#include <cstring>

namespace vgpu::snapshot {

namespace {

// Level 1: the fastest that still halves what a program's memory usually holds.
constexpr int level = 1;
constexpr uint32_t chunkMagic = 0x4b4e4843;  // "CHNK"

struct ChunkHeader {
  uint32_t magic = chunkMagic;
  Form form = Form::zero;
  uint32_t rawBytes = 0, packedBytes = 0;
  uint64_t index = 0;
  uint64_t checksum = 0;  // XXH3, 64 bits, of the raw bytes
};
static_assert(sizeof(ChunkHeader) == 32 && std::endian::native == std::endian::little);

bool isZero(const std::byte* bytes, size_t size) {
  return size > 0 && bytes[0] == std::byte{0} && memcmp(bytes, bytes + 1, size - 1) == 0;
}

}  // namespace

size_t packedMost() { return ZSTD_compressBound(chunkBytes); }

void pack(Chunk& chunk) {
  chunk.checksum = XXH3_64bits(chunk.raw, chunk.rawBytes);
  chunk.packedBytes = 0;
  chunk.form = Form::zero;
  if (isZero(chunk.raw, chunk.rawBytes)) return;
  size_t packed = ZSTD_compress(chunk.packed.data(), chunk.packed.size(), chunk.raw, chunk.rawBytes, level);
  KJ_REQUIRE(!ZSTD_isError(packed), "compressing", ZSTD_getErrorName(packed));
  chunk.form = packed < chunk.rawBytes ? Form::zstd : Form::plain;
  chunk.packedBytes = packed < chunk.rawBytes ? packed : chunk.rawBytes;
}

void writeChunk(FileWriter& file, const Chunk& chunk) {
  ChunkHeader header{.form = chunk.form,
                     .rawBytes = static_cast<uint32_t>(chunk.rawBytes),
                     .packedBytes = static_cast<uint32_t>(chunk.packedBytes),
                     .index = chunk.index,
                     .checksum = chunk.checksum};
  file.write(std::as_bytes(std::span(&header, 1)));
  const std::byte* payload = chunk.form == Form::plain ? chunk.raw : chunk.packed.data();
  file.write({payload, chunk.packedBytes});
}

void readChunk(FileReader& file, size_t bytes, Chunk& chunk) {
  ChunkHeader header;
  file.read(std::as_writable_bytes(std::span(&header, 1)));
  bool sound = header.magic == chunkMagic && header.index == chunk.index && header.rawBytes == bytes &&
               ((header.form == Form::zero && header.packedBytes == 0) ||
                (header.form == Form::plain && header.packedBytes == header.rawBytes) ||
                (header.form == Form::zstd && header.packedBytes <= ZSTD_compressBound(header.rawBytes)));
  if (!sound) file.refuse(fmt::format("chunk {}: its header makes no sense", chunk.index));
  chunk.form = header.form;
  chunk.rawBytes = bytes;
  chunk.packedBytes = header.packedBytes;
  chunk.checksum = header.checksum;
  std::byte* payload = chunk.form == Form::plain ? chunk.raw : chunk.packed.data();
  file.read({payload, chunk.packedBytes});
}

void unpack(const FileReader& file, Chunk& chunk) {
  if (chunk.form == Form::zero) return;
  if (chunk.form == Form::zstd) {
    size_t bytes = ZSTD_decompress(chunk.raw, chunk.rawBytes, chunk.packed.data(), chunk.packedBytes);
    if (ZSTD_isError(bytes) || bytes != chunk.rawBytes)
      file.refuse(fmt::format("chunk {}: it does not decompress; the file was altered or damaged", chunk.index));
  }
  if (XXH3_64bits(chunk.raw, chunk.rawBytes) != chunk.checksum)
    file.refuse(fmt::format("chunk {}: its checksum differs; the file was altered or damaged", chunk.index));
}

}  // namespace vgpu::snapshot
