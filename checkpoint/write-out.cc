#include "checkpoint/write-out.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <set>

#include "checkpoint/chunk-file.h"
#include "checkpoint/pinned-chunks.h"
#include "checkpoint/progress.h"
#include "checkpoint/saved-snapshot.h"
#include "checkpoint/state.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/base/thread-group.h"
#include "vgpu/snapshot/pack-filler.h"
#include "vgpu/snapshot/packer.h"
#include "vgpu/snapshot/replace-manifest.h"
#include "vgpu/snapshot/write-progress.h"

namespace vgpu::checkpoint {

namespace {

// The chunks of a snapshot that are in `room`, each as a separate item of a plan, with their places there and in the snapshot's list; and
// the chunks that are in the snapshot's own packs.
struct InMemory {
  std::vector<uint64_t> sizes;
  std::vector<ChunkPlace> pinned, listed;
  struct Written {
    ChunkPlace place;
    size_t bytes;  // uncompressed size
  };
  std::vector<Written> written;
};

InMemory chunksIn(const PinnedRoom& room, const SnapshotReader& directory, const Manifest& manifest) {
  std::vector<ChunkPlan> plans{planOf(manifest.blobs), planOf(manifest.state)};
  auto listed = loadChunks(directory, manifest);
  auto places = findPinned(room, manifest.digestKey, listed, plans);
  InMemory found;
  std::set<Digest> known;  // equal chunks have one place
  size_t chunk = 0;
  for (auto& plan : plans)
    for (; auto piece = plan.next(); ++chunk) {
      if (listed[chunk].form == Form::zero || !known.insert(listed[chunk].digest).second) continue;
      if (places[chunk].form == Form::pinned) {
        found.sizes.push_back(piece->bytes);
        found.pinned.push_back(places[chunk]);
        found.listed.push_back(listed[chunk]);
      } else if (listed[chunk].form == Form::plain || listed[chunk].form == Form::zstd) {
        found.written.push_back({listed[chunk], piece->bytes});
      }
    }
  return found;
}

void writeToStore(ChunkStore& store, const InMemory& memory, const PinnedRoom& room, const Progress& progress, uint64_t& bytes) {
  ChunkSink sink(store);
  ChunkPlan plan(memory.sizes);
  Phase phase(progress, "writing", plan.bytes());
  auto fill = [&](const Piece& piece, std::byte* out) -> OnItsWay {
    auto bytes = room.at(memory.pinned[piece.item].offset, piece.bytes);
    std::memcpy(out, bytes.data(), bytes.size());
    faultPoint("write.writing");
    phase.advance(piece.bytes);
    return std::nullopt;
  };
  writeChunks(nullptr, sink, plan, {.fill = fill});
  finishChunks(sink);
  auto written = sink.places();
  for (size_t chunk = 0; chunk < written.size(); ++chunk)
    if (written[chunk].digest != memory.pinned[chunk].digest) refusePinned(chunk);
  sink.commit();
  bytes = sink.writtenBytes();
}

// Writes each pack with a thread of its own, in the order of its chunks.
void writeToPacks(const SnapshotReader& directory, const Manifest& manifest, const InMemory& memory, const PinnedRoom& room,
                  const Progress& progress, uint64_t& bytes) {
  std::mutex reporting;
  const Digester digester(manifest.digestKey);
  std::vector<std::vector<size_t>> ofPack(manifest.packs.size());
  for (size_t chunk = 0; chunk < memory.sizes.size(); ++chunk) {
    auto& place = memory.listed[chunk];
    if (place.form != Form::plain || place.bytes != memory.sizes[chunk])
      directory.refuse(chunksFile, fmt::format("chunk {} is in memory, but its position there belongs to another chunk", chunk));
    ofPack[place.pack].push_back(chunk);
    bytes += place.bytes;
  }
  Phase phase(progress, "writing", bytes);
  ThreadGroup threads([] {});
  auto write = [&](size_t pack) {
    std::ranges::sort(ofPack[pack], {}, [&](size_t chunk) { return memory.listed[chunk].offset; });
    PackFiller filler(directory.where(), packFile(static_cast<unsigned>(pack)));
    for (size_t chunk : ofPack[pack]) {
      auto from = room.at(memory.pinned[chunk].offset, memory.sizes[chunk]);
      if (digester(from) != memory.pinned[chunk].digest) refusePinned(chunk);
      filler.write(memory.listed[chunk].offset, from);
      faultPoint("write.writing");
      std::lock_guard lock(reporting);
      phase.advance(from.size());
    }
    filler.finish();
  };
  threads.guard([&] {
    for (size_t pack = 0; pack < ofPack.size(); ++pack)
      if (!ofPack[pack].empty()) threads.start([&, pack] { write(pack); });
  });
  threads.join();
}

// Verifies chunks that the suspend wrote to files because there was no room in memory.
void requireWritten(const SnapshotReader& directory, const Manifest& manifest, const InMemory& memory) {
  const Digester digester(manifest.digestKey);
  auto packs = directory.openPacks(manifest.packs);
  std::vector<std::byte> packed, bytes(chunkBytes);
  for (auto& [place, size] : memory.written) {
    packed.resize(place.bytes);
    packs[place.pack].read(place.offset, packed);
    auto chunk = std::span(bytes).first(size);
    if (!unpack(place.form, packed, chunk) || digester(chunk) != place.digest)
      packs[place.pack].refuse(fmt::format("{} bytes at {}: their digest does not match", place.bytes, place.offset));
  }
}

}  // namespace

Report writeOut(const std::string& path, const PinnedRoom& room) {
  SnapshotReader directory(path);
  Manifest manifest = readManifest(directory);
  requireValid(directory, manifest);
  auto store = storeOf(directory, manifest);
  InMemory memory = chunksIn(room, directory, manifest);
  uint64_t bytes = 0;
  WriteProgressFile shown(path);
  const Progress progress = [&](const char*, uint64_t done, uint64_t all) { shown.report(done, all); };
  progress("", 0, std::accumulate(memory.sizes.begin(), memory.sizes.end(), uint64_t{0}));
  if (store != nullptr) {
    writeToStore(*store, memory, room, progress, bytes);
  } else {
    requireWritten(directory, manifest, memory);
    writeToPacks(directory, manifest, memory, room, progress, bytes);
  }
  manifest.pool.clear();
  replaceManifest(path, encodeManifest(manifest));
  return {.deviceBytes = manifest.deviceBytes, .storedBytes = bytes, .objects = manifest.objectCount};
}

}  // namespace vgpu::checkpoint
