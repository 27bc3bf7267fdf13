#include "checkpoint/memory-digests.h"

#include <algorithm>
#include <cstring>

#include "stub/worker/execution.h"

namespace vgpu::checkpoint {

// Enough slots for all digests at once, limited to those for 64 GiB.
size_t MemoryDigests::slotsFor(uint64_t bytes) {
  constexpr uint64_t memoryOfSlot = chunkBytes / sizeof(Digest) * tileBytes;
  return std::clamp<uint64_t>((bytes + memoryOfSlot - 1) / memoryOfSlot, 1, 8);
}

void MemoryDigests::add(std::optional<Place> place, uint64_t bytes) {
  Item& item = items.emplace_back(Item{digests.size() + begun, 0});
  if (!place || place->address % 16 != 0 || bytes < tileBytes) return;
  if (on.driver.noteAllocation != nullptr) {
    item.tiles = bytes / tileBytes;
    return digestHere(*place, item.tiles);
  }
  auto& gpu = on.select(place->device).gpu;
  CUdeviceptr out = gpu.digests.load() ? ring.onGpu() : 0;
  if (out == 0) return;
  item.tiles = bytes / tileBytes;
  for (size_t done = 0; done < item.tiles;) {
    if (begun == tilesAtOnce) flush();
    auto count = static_cast<uint32_t>(std::min({item.tiles - done, tilesAtOnce - begun, size_t{1} << 30}));
    on.select(place->device);
    CUresult result = gpu.digests.digest(digester, place->address + done * tileBytes, count, out + begun * sizeof(Digest),
                                         gpu.progress.ownStream());
    stub::require(on.driver, result, "digesting the device's memory");
    begun += count;
    done += count;
  }
}

void MemoryDigests::digestHere(const Place& place, uint64_t tiles) {
  on.select(place.device);
  auto tile = ring.whole().first(tileBytes);
  for (uint64_t done = 0; done < tiles; ++done) {
    CUresult result = on.driver.cuMemcpyDtoH_v2(tile.data(), place.address + done * tileBytes, tileBytes);
    stub::require(on.driver, result, "digesting the device's memory");
    digests.push_back(digester.ofTile(tile));
  }
}

void MemoryDigests::flush() {
  if (begun == 0) return;
  stub::require(on.driver, on.synchronize(), "digesting the device's memory");
  size_t before = digests.size();
  digests.resize(before + begun);
  std::memcpy(&digests[before], ring.whole().data(), begun * sizeof(Digest));
  begun = 0;
}

std::optional<Digest> MemoryDigests::of(const Piece& piece) const {
  auto& item = items[piece.item];
  size_t first = piece.offset / tileBytes, count = piece.bytes / tileBytes;
  if (piece.bytes % tileBytes != 0 || first + count > item.tiles) return std::nullopt;
  return digester.ofTiles(std::span(digests).subspan(item.first + first, count), piece.bytes);
}

}  // namespace vgpu::checkpoint
