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

namespace {

// Restores a chunk into `bytes`, which has the chunk's size, from its stored form. Throws kj::Exception that names the pack if that fails.
void requireChunk(const PackReader& pack, uint64_t offset, std::span<const std::byte> packed, Form form, std::span<std::byte> bytes,
                  const Digester& digester, const Digest& expected) {
  if (!unpack(form, packed, bytes) || digester(bytes) != expected)
    pack.refuse(fmt::format("{} bytes at {}: their digest does not match; the file was altered or damaged", packed.size(), offset));
}

// Reads with as many threads as are worthwhile. Each thread makes a function that reads the chunk of a given index and returns its size.
void readAll(size_t chunks, const std::function<std::function<size_t(size_t)>()>& makeReader,
             const std::function<void(uint64_t bytes)>& done) {
  std::atomic<size_t> next{0};
  std::mutex reporting;
  ThreadGroup threads([&] { next = chunks; });
  for (unsigned thread = 0; thread < threadsFor(chunks); ++thread)
    threads.start([&, read = makeReader()] {
      for (size_t chunk = next++; chunk < chunks; chunk = next++) {
        const size_t bytes = read(chunk);
        std::lock_guard lock(reporting);
        done(bytes);
      }
    });
  threads.join();
}

}  // namespace

void StoredChunkReader::read(const LocatedChunk& chunk, std::vector<std::byte>& packed) {
  auto& [name, at] = chunk;
  PackReader pack(store.path(), store.packPath(at.pack));
  packed.resize(std::min<size_t>(at.bytes, packedMost()));
  bytes.resize(std::min<uint64_t>(name.bytes, chunkBytes));
  pack.read(at.offset, packed);
  requireChunk(pack, at.offset, packed, static_cast<Form>(at.form), bytes, digester, name.digest);
}

unsigned threadsFor(size_t chunks) {
  constexpr size_t chunksOfThread = 8;
  return static_cast<unsigned>(std::clamp<size_t>(chunks / chunksOfThread, 1, packsHere()));
}

void verifyChunks(const ChunkStore& store, std::vector<LocatedChunk> chunks, const std::function<void(uint64_t bytes)>& done) {
  std::ranges::sort(chunks, {}, [](auto& chunk) { return std::tuple(chunk.at.pack, chunk.at.offset); });
  auto makeReader = [&] {
    return [&chunks, reader = StoredChunkReader(store), packed = std::vector<std::byte>()](size_t chunk) mutable {
      reader.read(chunks[chunk], packed);
      return packed.size();
    };
  };
  readAll(chunks.size(), makeReader, done);
}

size_t verifyOwnChunks(const SnapshotReader& directory, const Header& header, const std::function<void(uint64_t bytes)>& done) {
  auto places = readChunkList(directory, header);
  std::erase_if(places, [](auto& place) { return place.form != Form::plain && place.form != Form::zstd; });
  std::ranges::sort(places, {}, [](auto& place) { return std::tuple(place.pack, place.offset); });
  auto repeated = std::ranges::unique(places);
  places.erase(repeated.begin(), repeated.end());
  const auto packs = directory.openPacks(header.packs);
  auto makeReader = [&] {
    return [&, digester = Digester(header.digestKey), packed = std::vector<std::byte>(), bytes = std::vector<std::byte>()](size_t chunk) mutable {
      auto& place = places[chunk];
      packed.resize(std::min<size_t>(place.bytes, packedMost()));
      packs[place.pack].read(place.offset, packed);
      bytes.resize(unpackedBytes(place.form, packed));
      requireChunk(packs[place.pack], place.offset, packed, place.form, bytes, digester, place.digest);
      return packed.size();
    };
  };
  readAll(places.size(), makeReader, done);
  return places.size();
}

}  // namespace vgpu::snapshot
