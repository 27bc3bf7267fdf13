#include "stub/emulator/memory/place-pool.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace vgpu::emulator::api {

uint64_t PlacePool::addChunk(uint64_t bytes) {
  MemoryLease lease(device, bytes);
  const std::optional<uint64_t> base = range.take(bytes, pieceBytes);
  if (!base) refuse(CUDA_ERROR_OUT_OF_MEMORY);
  chunks.emplace(*base, Chunk{std::move(lease), bytes});
  return *base;
}

void PlacePool::addGap(uint64_t base, uint64_t end) {
  if (base < end) gaps[base] = {end - base, nextBorn++};
}

PlacePool::Gaps::iterator PlacePool::findGap(uint64_t bytes, uint64_t alignment) {
  auto best = gaps.end();
  for (auto at = gaps.begin(); at != gaps.end(); ++at) {
    const auto& [base, gap] = *at;
    if (alignUp(base, alignment) + bytes > base + gap.bytes) continue;
    if (best == gaps.end() || std::tie(gap.bytes, gap.born) < std::tie(best->second.bytes, best->second.born))
      best = at;
  }
  return best;
}

uint64_t PlacePool::take(uint64_t bytes, uint64_t alignment) {
  if (bytes > device.totalBytes()) refuse(CUDA_ERROR_OUT_OF_MEMORY);
  const uint64_t rounded = alignUp(std::max<uint64_t>(bytes, 1), granule);
  std::lock_guard lock(mutex);
  if (rounded >= pieceBytes) {
    const uint64_t whole = addChunk(alignUp(rounded, pieceBytes));
    taken[whole] = rounded;
    return whole;
  }
  alignment = std::max(alignment, granule);
  auto gap = findGap(rounded, alignment);
  if (gap == gaps.end()) gap = gaps.emplace(addChunk(pieceBytes), Gap{pieceBytes, nextBorn++}).first;
  const uint64_t begin = gap->first, end = begin + gap->second.bytes, base = alignUp(begin, alignment);
  gaps.erase(gap);
  addGap(begin, base);
  addGap(base + rounded, end);
  taken[base] = rounded;
  return base;
}

void PlacePool::give(uint64_t base) {
  std::lock_guard lock(mutex);
  const auto piece = taken.find(base);
  const auto chunk = std::prev(chunks.upper_bound(base));
  const uint64_t chunkBegin = chunk->first, chunkEnd = chunkBegin + chunk->second.bytes;
  uint64_t begin = base, end = base + piece->second;
  taken.erase(piece);
  if (const auto next = gaps.find(end); next != gaps.end() && end < chunkEnd) {
    end += next->second.bytes;
    gaps.erase(next);
  }
  if (auto before = gaps.lower_bound(base); before != gaps.begin() && base > chunkBegin) {
    --before;
    if (before->first + before->second.bytes == begin) {
      begin = before->first;
      gaps.erase(before);
    }
  }
  const bool isLast = begin == chunkBegin && (end == chunkEnd || chunk->second.bytes > pieceBytes);
  if (!isLast) return addGap(begin, end);
  range.give(chunkBegin);
  chunks.erase(chunk);
}

}  // namespace vgpu::emulator::api
