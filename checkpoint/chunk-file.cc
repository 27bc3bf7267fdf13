#include "checkpoint/chunk-file.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace vgpu::checkpoint {

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

// What this piece may say of itself, and its payload.
void readChunk(FileReader& file, const Piece& piece, Chunk& chunk) {
  ChunkHeader header;
  file.read(std::as_writable_bytes(std::span(&header, 1)));
  bool sound = header.magic == chunkMagic && header.index == chunk.index && header.rawBytes == piece.bytes &&
               ((header.form == Form::zero && header.packedBytes == 0) ||
                (header.form == Form::plain && header.packedBytes == header.rawBytes) ||
                (header.form == Form::zstd && header.packedBytes <= ZSTD_compressBound(header.rawBytes)));
  if (!sound) file.refuse(fmt::format("chunk {}: its header makes no sense", chunk.index));
  chunk.form = header.form;
  chunk.rawBytes = piece.bytes;
  chunk.packedBytes = header.packedBytes;
  chunk.checksum = header.checksum;
  std::byte* payload = chunk.form == Form::plain ? chunk.raw : chunk.packed.data();
  file.read({payload, chunk.packedBytes});
}

void unpack(FileReader& file, Chunk& chunk) {
  if (chunk.form == Form::zero) return;
  if (chunk.form == Form::zstd) {
    size_t bytes = ZSTD_decompress(chunk.raw, chunk.rawBytes, chunk.packed.data(), chunk.packedBytes);
    if (ZSTD_isError(bytes) || bytes != chunk.rawBytes)
      file.refuse(fmt::format("chunk {}: it does not decompress; the file was altered or damaged", chunk.index));
  }
  if (XXH3_64bits(chunk.raw, chunk.rawBytes) != chunk.checksum)
    file.refuse(fmt::format("chunk {}: its checksum differs; the file was altered or damaged", chunk.index));
}

}  // namespace

std::optional<Piece> ChunkPlan::next() {
  while (item < sizes.size() && offset == sizes[item]) {
    ++item;
    offset = 0;
  }
  if (item == sizes.size()) return std::nullopt;
  Piece piece{item, offset, static_cast<size_t>(std::min<uint64_t>(chunkBytes, sizes[item] - offset))};
  offset += piece.bytes;
  return piece;
}

void writeChunks(Pipeline& pipeline, FileWriter& file, ChunkPlan plan,
                 const std::function<void(const Piece&, std::byte*)>& fill) {
  Pipeline::Stages stages;
  stages.produce = [&](Chunk& chunk) {
    auto piece = plan.next();
    if (!piece) return false;
    chunk.rawBytes = piece->bytes;
    fill(*piece, chunk.raw);
    return true;
  };
  stages.transform = pack;
  stages.consume = [&](Chunk& chunk) { writeChunk(file, chunk); };
  pipeline.run(stages, Pipeline::Here::produce);
}

void readChunks(Pipeline& pipeline, FileReader& file, ChunkPlan plan,
                const std::function<void(const Piece&, const std::byte*)>& take) {
  ChunkPlan taken = plan;
  Pipeline::Stages stages;
  stages.produce = [&](Chunk& chunk) {
    auto piece = plan.next();
    if (piece) readChunk(file, *piece, chunk);
    return piece.has_value();
  };
  stages.transform = [&](Chunk& chunk) { unpack(file, chunk); };
  stages.consume = [&](Chunk& chunk) { take(*taken.next(), chunk.form == Form::zero ? nullptr : chunk.raw); };
  pipeline.run(stages, Pipeline::Here::consume);
  file.finish();
}

}  // namespace vgpu::checkpoint
