#include "stub/emulator/memory/device-pool.h"

#include <iterator>

namespace vgpu::emulator::api {
namespace {

// What cuMemAlloc guarantees on hardware is 256; textures need 512 (CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT).
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
  MemoryLease lease(device_, size);
  std::shared_ptr<HostView> view = HostView::anonymous(size);
  std::optional<uint64_t> base = space_.plain.take(size, pieceBytes);
  if (!base) refuse(CUDA_ERROR_OUT_OF_MEMORY);
  chunks_.emplace(*base, Chunk{std::move(lease), std::move(view), {}});
  return *base;
}

uint64_t DevicePool::allocate(uint64_t bytes, Context* context, CUmemoryPool pool) {
  if (bytes > device_.totalBytes()) refuse(CUDA_ERROR_OUT_OF_MEMORY);
  uint64_t rounded = alignUp(bytes, allocationAlignment), chunkBase = 0, offset = 0;
  std::lock_guard lock(mutex_);
  if (rounded <= pieceBytes / 2) {
    for (const auto& [base, chunk] : chunks_) {
      if (chunk.view->bytes() != pieceBytes) continue;
      if (std::optional<uint64_t> gap = findGap(chunk, rounded)) {
        chunkBase = base;
        offset = *gap;
        break;
      }
    }
  }
  if (chunkBase == 0) chunkBase = addChunk(rounded);
  Chunk& chunk = chunks_.at(chunkBase);
  chunk.taken[offset] = rounded;
  space_.map(Mapping{.base = chunkBase + offset,
                     .bytes = bytes,
                     .kind = MappingKind::plain,
                     .view = chunk.view,
                     .host = chunk.view->base() + offset,
                     .device = &device_,
                     .context = context,
                     .readers = device_.bit(),
                     .writers = device_.bit(),
                     .pool = pool},
             CUDA_ERROR_UNKNOWN);
  return chunkBase + offset;
}

void DevicePool::free(uint64_t address) {
  space_.unmap(address, MappingKind::plain, CUDA_ERROR_INVALID_VALUE);
  std::lock_guard lock(mutex_);
  auto chunk = std::prev(chunks_.upper_bound(address));
  chunk->second.taken.erase(address - chunk->first);
  if (!chunk->second.taken.empty()) return;
  space_.plain.give(chunk->first);
  chunks_.erase(chunk);
}

}  // namespace vgpu::emulator::api
