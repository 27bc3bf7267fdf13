#include "vgpu/snapshot/chunk-sink.h"

#include <unistd.h>

#include <chrono>
#include <map>
#include <utility>

#include "vgpu/base/fault-point.h"

namespace vgpu::snapshot {

ChunkSink::ChunkSink(std::vector<PackWriter> packs, const DigestKey& key)
    : key(key), digester(key), zeroChunk(digester.ofZeros(chunkBytes)) {
  for (auto& pack : packs) writing.push_back({std::move(pack), Packer(), 0});
}

ChunkSink::ChunkSink(ChunkStore& store)
    : key(store.key()), digester(key), zeroChunk(digester.ofZeros(chunkBytes)), writing(packsHere()), store(&store) {}

ChunkSink::~ChunkSink() noexcept {
  for (auto& one : writing)
    if (one.number != 0 && !isCommitted) unlink(store->packPath(one.number).c_str());
}

size_t ChunkSink::reserve(size_t count) {
  size_t begin = list.size();
  list.resize(begin + count);
  sizes.resize(begin + count);
  for (size_t chunk = begin; chunk < list.size(); ++chunk) sameAs.push_back(chunk);
  return begin;
}

// Whether the chunk is known neither here nor in the store.
bool ChunkSink::isFirst(const Digest& digest, size_t chunk, size_t bytes) {
  list[chunk].digest = digest;
  std::lock_guard lock(mutex);
  sameAs[chunk] = first.emplace(digest, chunk).first->second;
  if (sameAs[chunk] != chunk) return false;
  if (store == nullptr || !store->find({digest, bytes})) return true;
  list[chunk].form = Form::stored;
  list[chunk].offset = bytes;
  return false;
}

bool ChunkSink::knows(const Digest& digest, size_t bytes) {
  if (digest == (bytes == chunkBytes ? zeroChunk : digester.ofZeros(bytes))) return true;
  std::lock_guard lock(mutex);
  return first.contains(digest) || (store != nullptr && store->find({digest, bytes}));
}

bool ChunkSink::has(size_t chunk, const Digest& digest, size_t bytes) {
  if (digest == (bytes == chunkBytes ? zeroChunk : digester.ofZeros(bytes))) {
    list[chunk].digest = digest;
    return true;
  }
  return !isFirst(digest, chunk, bytes);
}

void ChunkSink::add(unsigned writer, size_t chunk, std::span<const std::byte> bytes, bool isDigested) {
  Packer& packer = writing[writer].packer;
  ChunkPlace& place = list[chunk];
  if (!isDigested) {
    if (isZero(bytes)) {
      place.digest = digester.ofZeros(bytes.size());
      return;
    }
    if (!isFirst(digester(bytes), chunk, bytes.size())) return;
  }
  Packer::Packed packed = packer.pack(bytes);
  auto start = std::chrono::steady_clock::now();
  place.offset = packOf(writing[writer]).append(packed.bytes);
  packer.noteWritten(packed.bytes.size(), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  place.bytes = static_cast<uint32_t>(packed.bytes.size());
  place.pack = static_cast<uint16_t>(writer);
  place.form = packed.form;
  sizes[chunk] = static_cast<uint32_t>(bytes.size());
}

bool ChunkSink::addPinned(size_t chunk, const Digest& digest, size_t bytes, bool isDigested) {
  if (!isDigested && has(chunk, digest, bytes)) return false;
  ChunkPlace& place = list[chunk];
  if (store == nullptr) {
    place.pack = static_cast<uint16_t>(nextPinned++ % writing.size());
    place.offset = writing[place.pack].pack->leave(bytes);
    place.bytes = static_cast<uint32_t>(bytes);
    place.form = Form::plain;
    left += bytes;
    return true;
  }
  place.form = Form::stored;
  place.offset = bytes;
  return true;
}

void ChunkSink::addResident(size_t chunk, const Digest& digest) {
  list[chunk].digest = digest;
  list[chunk].form = Form::resident;
}

PackWriter& ChunkSink::packOf(Writing& writer) {
  if (!writer.pack) {
    std::lock_guard lock(mutex);
    auto made = store->createPack();
    writer.number = made.number;
    writer.pack.emplace(kj::mv(made.file), made.path);
  }
  return *writer.pack;
}

void ChunkSink::finish(unsigned writer) {
  if (writing[writer].pack) writing[writer].bytes = writing[writer].pack->finish();
}

std::vector<ChunkPlace> ChunkSink::places() const {
  std::vector<ChunkPlace> places;
  for (size_t i = listBegin; i < sameAs.size(); ++i) {
    size_t chunk = sameAs[i];
    bool isNamed = store != nullptr && (list[chunk].form == Form::plain || list[chunk].form == Form::zstd);
    places.push_back(!isNamed ? list[chunk] : ChunkPlace{.digest = list[chunk].digest, .offset = sizes[chunk], .form = Form::stored});
  }
  return places;
}

void ChunkSink::commit() {
  if (store == nullptr) return;
  faultPoint("suspend.packs-synced");
  std::map<ChunkName, StoredChunk> added;
  for (size_t i = listBegin; i < list.size(); ++i) {
    size_t chunk = sameAs[i];
    const ChunkPlace& place = list[chunk];
    if (place.form != Form::plain && place.form != Form::zstd) continue;
    added[{place.digest, sizes[chunk]}] = {writing[place.pack].number, place.offset, place.bytes, static_cast<uint32_t>(place.form)};
  }
  if (!added.empty()) store->add(added);
  isCommitted = true;
  faultPoint("suspend.chunks-indexed");
}

uint64_t ChunkSink::writtenBytes() const {
  uint64_t bytes = 0;
  for (auto& one : writing) bytes += one.bytes;
  return bytes;
}

std::vector<uint64_t> ChunkSink::packs() const {
  std::vector<uint64_t> bytes;
  for (auto& one : writing)
    if (store == nullptr) bytes.push_back(one.bytes);
  return bytes;
}

}  // namespace vgpu::snapshot
