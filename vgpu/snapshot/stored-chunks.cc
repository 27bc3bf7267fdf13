#include "vgpu/snapshot/stored-chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <tuple>

#include "vgpu/base/thread-group.h"
#include "vgpu/snapshot/packer.h"

namespace vgpu::snapshot {

std::vector<ChunkName> storedChunksOf(std::span<const ChunkPlace> places) {
  std::vector<ChunkName> names;
  std::set<ChunkName> known;
  for (auto& place : places) {
    ChunkName name{place.digest, place.offset};
    if (place.form == Form::stored && known.insert(name).second) names.push_back(name);
  }
  return names;
}

std::vector<ChunkPlace> readChunkList(const SnapshotReader& directory, const Header& header) {
  return decodeChunks(directory.readWhole(chunksFile, header.files.at(chunksFile), maxChunkListBytes), header.packs);
}

uint64_t bytesOf(std::span<const LocatedChunk> chunks) {
  uint64_t bytes = 0;
  for (auto& chunk : chunks) bytes += chunk.at.bytes;
  return bytes;
}

std::vector<LocatedChunk> locate(ChunkStore& store, std::span<const ChunkName> names) {
  std::vector<LocatedChunk> located;
  for (auto& name : names) located.push_back({name, store.get(name)});
  return located;
}

void StoredChunkReader::read(const LocatedChunk& chunk, std::vector<std::byte>& packed) {
  auto& [name, at] = chunk;
  PackReader pack(store.path(), store.packPath(at.pack));
  packed.resize(std::min<size_t>(at.bytes, packedMost()));
  bytes.resize(std::min<uint64_t>(name.bytes, chunkBytes));
  pack.read(at.offset, packed);
  if (!unpack(static_cast<Form>(at.form), packed, bytes) || digester(bytes) != name.digest)
    pack.refuse(fmt::format("{} bytes at {}: their digest differs; the file was altered or damaged", at.bytes, at.offset));
}

unsigned threadsFor(size_t chunks) {
  constexpr size_t chunksOfThread = 8;
  return static_cast<unsigned>(std::clamp<size_t>(chunks / chunksOfThread, 1, packsHere()));
}

void verifyChunks(const ChunkStore& store, std::vector<LocatedChunk> chunks, const std::function<void(uint64_t bytes)>& done) {
  std::ranges::sort(chunks, {}, [](auto& chunk) { return std::tuple(chunk.at.pack, chunk.at.offset); });
  std::atomic<size_t> next{0};
  std::mutex reporting;
  ThreadGroup threads([&] { next = chunks.size(); });
  for (unsigned thread = 0; thread < threadsFor(chunks.size()); ++thread)
    threads.start([&] {
      StoredChunkReader reader(store);
      std::vector<std::byte> packed;
      for (size_t chunk = next++; chunk < chunks.size(); chunk = next++) {
        reader.read(chunks[chunk], packed);
        std::lock_guard lock(reporting);
        done(packed.size());
      }
    });
  threads.join();
}

}  // namespace vgpu::snapshot
