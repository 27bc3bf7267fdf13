#include "stub/emulator/memory/place-pool.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace vgpu::emulator::api {

uint64_t PlacePool::addChunk(uint64_t bytes) {
  MemoryLease lease(device_, bytes);
  const std::optional<uint64_t> base = range_.take(bytes, pieceBytes);
  if (!base) refuse(CUDA_ERROR_OUT_OF_MEMORY);
  chunks_.emplace(*base, Chunk{std::move(lease), bytes});
  return *base;
}

void PlacePool::addGap(uint64_t base, uint64_t end) {
  if (base < end) gaps_[base] = {end - base, nextBorn_++};
}

PlacePool::Gaps::iterator PlacePool::findGap(uint64_t bytes, uint64_t alignment) {
  auto best = gaps_.end();
  for (auto at = gaps_.begin(); at != gaps_.end(); ++at) {
    const auto& [base, gap] = *at;
    if (alignUp(base, alignment) + bytes > base + gap.bytes) continue;
    if (best == gaps_.end() || std::tie(gap.bytes, gap.born) < std::tie(best->second.bytes, best->second.born))
      best = at;
  }
  return best;
}

uint64_t PlacePool::take(uint64_t bytes, uint64_t alignment) {
  if (bytes > device_.totalBytes()) refuse(CUDA_ERROR_OUT_OF_MEMORY);
  const uint64_t rounded = alignUp(std::max<uint64_t>(bytes, 1), granule_);
  std::lock_guard lock(mutex_);
  if (rounded >= pieceBytes) {
    const uint64_t whole = addChunk(alignUp(rounded, pieceBytes));
    taken_[whole] = rounded;
    return whole;
  }
  alignment = std::max(alignment, granule_);
  auto gap = findGap(rounded, alignment);
  if (gap == gaps_.end()) gap = gaps_.emplace(addChunk(pieceBytes), Gap{pieceBytes, nextBorn_++}).first;
  const uint64_t begin = gap->first, end = begin + gap->second.bytes, base = alignUp(begin, alignment);
  gaps_.erase(gap);
  addGap(begin, base);
  addGap(base + rounded, end);
  taken_[base] = rounded;
  return base;
}

void PlacePool::give(uint64_t base) {
  std::lock_guard lock(mutex_);
  const auto piece = taken_.find(base);
  const auto chunk = std::prev(chunks_.upper_bound(base));
  const uint64_t chunkBegin = chunk->first, chunkEnd = chunkBegin + chunk->second.bytes;
  uint64_t begin = base, end = base + piece->second;
  taken_.erase(piece);
  if (const auto next = gaps_.find(end); next != gaps_.end() && end < chunkEnd) {
    end += next->second.bytes;
    gaps_.erase(next);
  }
  if (auto before = gaps_.lower_bound(base); before != gaps_.begin() && base > chunkBegin) {
    --before;
    if (before->first + before->second.bytes == begin) {
      begin = before->first;
      gaps_.erase(before);
    }
  }
  const bool isLast = begin == chunkBegin && (end == chunkEnd || chunk->second.bytes > pieceBytes);
  if (!isLast) return addGap(begin, end);
  range_.give(chunkBegin);
  chunks_.erase(chunk);
}

}  // namespace vgpu::emulator::api
