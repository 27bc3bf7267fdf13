#include "checkpoint/chunk-file.h"

#include <algorithm>

namespace vgpu::checkpoint {

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
    if (piece) readChunk(file, piece->bytes, chunk);
    return piece.has_value();
  };
  stages.transform = [&](Chunk& chunk) { unpack(file, chunk); };
  stages.consume = [&](Chunk& chunk) { take(*taken.next(), chunk.form == Form::zero ? nullptr : chunk.raw); };
  pipeline.run(stages, Pipeline::Here::consume);
  file.finish();
}

}  // namespace vgpu::checkpoint
