#include "vgpu/snapshot/chunk-sink.h"

#include <chrono>

namespace vgpu::snapshot {

ChunkSink::ChunkSink(std::vector<PackWriter> packs, const DigestKey& key) : digester(key), zeroChunk(digester.ofZeros(chunkBytes)) {
  for (auto& pack : packs) writing.push_back({std::move(pack), Packer(), 0});
}

size_t ChunkSink::reserve(size_t count) {
  size_t begin = list.size();
  list.resize(begin + count);
  for (size_t chunk = begin; chunk < list.size(); ++chunk) sameAs.push_back(chunk);
  return begin;
}

bool ChunkSink::isFirst(const Digest& digest, size_t chunk) {
  list[chunk].digest = digest;
  std::lock_guard lock(mutex);
  sameAs[chunk] = first.emplace(digest, chunk).first->second;
  return sameAs[chunk] == chunk;
}

bool ChunkSink::has(size_t chunk, const Digest& digest, size_t bytes) {
  if (digest == (bytes == chunkBytes ? zeroChunk : digester.ofZeros(bytes))) {
    list[chunk].digest = digest;
    return true;
  }
  return !isFirst(digest, chunk);
}

void ChunkSink::add(unsigned writer, size_t chunk, std::span<const std::byte> bytes, bool isDigested) {
  auto& [pack, packer, total] = writing[writer];
  ChunkPlace& place = list[chunk];
  if (!isDigested) {
    if (isZero(bytes)) {
      place.digest = digester.ofZeros(bytes.size());
      return;
    }
    if (!isFirst(digester(bytes), chunk)) return;
  }
  Packer::Packed packed = packer.pack(bytes);
  auto start = std::chrono::steady_clock::now();
  place.offset = pack.append(packed.bytes);
  packer.noteWritten(packed.bytes.size(), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  place.bytes = static_cast<uint32_t>(packed.bytes.size());
  place.pack = static_cast<uint16_t>(writer);
  place.form = packed.form;
}

void ChunkSink::finish(unsigned writer) { writing[writer].bytes = writing[writer].pack.finish(); }

std::vector<ChunkPlace> ChunkSink::places() const {
  std::vector<ChunkPlace> places;
  for (size_t chunk : sameAs) places.push_back(list[chunk]);
  return places;
}

std::vector<uint64_t> ChunkSink::packs() const {
  std::vector<uint64_t> sizes;
  for (auto& one : writing) sizes.push_back(one.bytes);
  return sizes;
}

}  // namespace vgpu::snapshot
