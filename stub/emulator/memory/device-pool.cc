#include "stub/emulator/memory/device-pool.h"

#include <iterator>

namespace vgpu::emulator::api {
namespace {

// cuMemAlloc guarantees 256 on hardware; textures need 512 (CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT).
constexpr uint64_t allocationAlignment = 512;

}  // namespace

std::optional<uint64_t> DevicePool::findGap(const Chunk& chunk, uint64_t bytes) const {
  uint64_t at = 0;
  for (const auto& [offset, taken] : chunk.taken) {
    if (offset - at >= bytes) return at;
    at = offset + taken;
  }
  if (chunk.view->bytes() - at >= bytes) return at;
  return std::nullopt;
}

uint64_t DevicePool::addChunk(uint64_t bytes) {
  uint64_t size = alignUp(bytes, pieceBytes);
  MemoryLease lease(device, size);
  std::shared_ptr<HostView> view = HostView::anonymous(size);
  std::optional<uint64_t> base = space.plain.take(size, pieceBytes);
  if (!base) refuse(CUDA_ERROR_OUT_OF_MEMORY);
  chunks.emplace(*base, Chunk{std::move(lease), std::move(view), {}});
  return *base;
}

uint64_t DevicePool::allocate(uint64_t bytes, Context* context, CUmemoryPool pool) {
  if (bytes > device.totalBytes()) refuse(CUDA_ERROR_OUT_OF_MEMORY);
  uint64_t rounded = alignUp(bytes, allocationAlignment), chunkBase = 0, offset = 0;
  std::lock_guard lock(mutex);
  if (rounded <= pieceBytes / 2) {
    for (const auto& [base, chunk] : chunks) {
      if (chunk.view->bytes() != pieceBytes) continue;
      if (std::optional<uint64_t> gap = findGap(chunk, rounded)) {
        chunkBase = base;
        offset = *gap;
        break;
      }
    }
  }
  if (chunkBase == 0) chunkBase = addChunk(rounded);
  Chunk& chunk = chunks.at(chunkBase);
  chunk.taken[offset] = rounded;
  space.map(Mapping{.base = chunkBase + offset,
                    .bytes = bytes,
                    .kind = MappingKind::plain,
                    .view = chunk.view,
                    .host = chunk.view->base() + offset,
                    .device = &device,
                    .context = context,
                    .readers = device.bit(),
                    .writers = device.bit(),
                    .pool = pool},
            CUDA_ERROR_UNKNOWN);
  return chunkBase + offset;
}

void DevicePool::free(uint64_t address) {
  space.unmap(address, MappingKind::plain, CUDA_ERROR_INVALID_VALUE);
  std::lock_guard lock(mutex);
  auto chunk = std::prev(chunks.upper_bound(address));
  chunk->second.taken.erase(address - chunk->first);
  if (!chunk->second.taken.empty()) return;
  space.plain.give(chunk->first);
  chunks.erase(chunk);
}

}  // namespace vgpu::emulator::api
