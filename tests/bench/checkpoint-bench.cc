// Throughput of the chunk pipeline: memory to a file and back, compressed and checked. Times are reported, never asserted; the file is
// synced, so they include the disk.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "../objects/frames.h"
#include "checkpoint/chunk-file.h"

namespace {

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

constexpr size_t totalBytes = size_t{256} << 20;

// 0: zeros. 1: floats close to each other, as in a simulation. 2: incompressible bytes.
std::vector<std::byte> content(int64_t kind) {
  std::vector<std::byte> bytes(totalBytes);
  std::mt19937_64 random(1);
  for (size_t at = 0; kind != 0 && at < bytes.size(); at += 8) {
    uint64_t value = random();
    if (kind == 1) value = (value & 0x0000'0fff'0000'0fff) | 0x3f80'0000'3f80'0000;
    std::memcpy(&bytes[at], &value, 8);
  }
  return bytes;
}

struct Written {
  std::vector<ChunkPlace> places;
  std::vector<uint64_t> packs;
};

Written write(SnapshotWriter& directory, const std::vector<std::byte>& bytes) {
  ChunkSink sink(directory.openPacks(), DigestKey{});
  auto fill = [&](const Piece& piece, std::byte* out) -> OnItsWay {
    std::memcpy(out, bytes.data() + piece.offset, piece.bytes);
    return std::nullopt;
  };
  writeChunks(nullptr, sink, ChunkPlan({bytes.size()}), {fill});
  finishChunks(sink);
  return {sink.places(), sink.packs()};
}

void save(benchmark::State& state) {
  auto bytes = content(state.range(0));
  ScratchDirectory scratch;
  uint64_t stored = 0;
  for (auto _ : state) {
    SnapshotWriter directory(scratch.path + "/s");  // the constructor removes what the directory holds
    auto packs = write(directory, bytes).packs;
    stored = std::accumulate(packs.begin(), packs.end(), uint64_t{0});
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * totalBytes));
  state.counters["stored"] = static_cast<double>(stored) / totalBytes;
}
BENCHMARK(save)->DenseRange(0, 2)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);

void restore(benchmark::State& state) {
  auto bytes = content(state.range(0));
  ScratchDirectory scratch;
  StagingRing ring(nullptr, StagingRing::slotsFor(packsHere()));
  Written written;
  {
    SnapshotWriter directory(scratch.path + "/s");
    written = write(directory, bytes);
    directory.publish("");
  }
  for (auto _ : state) {
    SavedChunks saved(SnapshotReader(scratch.path + "/s"), written.places, written.packs, DigestKey{});
    ChunkReading(ring, saved, 0, ChunkPlan({bytes.size()})).run(nullptr, [&](const Piece& piece, const std::byte* in) -> OnItsWay {
      if (in != nullptr) std::memcpy(bytes.data() + piece.offset, in, piece.bytes);
      return std::nullopt;
    });
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * totalBytes));
}
BENCHMARK(restore)->DenseRange(0, 2)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);

// Cost of the index in a save of 32 GiB: inserts new chunks, and looks up chunks that it has.
constexpr size_t chunksOf32GiB = 16384;

std::map<ChunkName, StoredChunk> rows(uint64_t version) {
  std::mt19937_64 random(version);
  std::map<ChunkName, StoredChunk> made;
  for (uint64_t chunk = 0; chunk < chunksOf32GiB; ++chunk) made[{{random() >> 3, random() >> 3}, chunkBytes}] = {1, chunk * chunkBytes, chunkBytes, 1};
  return made;
}

void addToIndex(benchmark::State& state) {
  ScratchDirectory scratch;
  ChunkStore store(scratch.path + "/store");
  uint64_t version = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto made = rows(++version);
    state.ResumeTiming();
    store.add(made);
  }
}
BENCHMARK(addToIndex)->Iterations(20)->UseRealTime()->Unit(benchmark::kMillisecond);

void askIndex(benchmark::State& state) {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  auto known = rows(1);
  {
    ChunkStore store(path);
    auto pack = store.createPack();
    if (ftruncate(pack.file, chunksOf32GiB * chunkBytes) != 0) return state.SkipWithError("no sparse files");
    for (auto& [name, chunk] : known) chunk.pack = pack.number;
    store.add(known);
  }
  for (auto _ : state) {
    ChunkStore store(path);
    ChunkSink sink(store);
    size_t chunk = sink.reserve(known.size());
    for (auto& [name, stored] : known)
      if (!sink.has(chunk++, name.digest, name.bytes)) state.SkipWithError("a chunk is not found");
  }
}
BENCHMARK(askIndex)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
