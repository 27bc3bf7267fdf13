#include "stub/emulator/memory/va-heap.h"

#include <algorithm>
#include <atomic>
#include <iterator>

namespace vgpu::emulator::api {
namespace {

std::atomic<uint64_t (*)(uint64_t)> placeBlock{nullptr};
std::atomic<void (*)(uint64_t, uint64_t)> releaseBlock{nullptr};

constexpr uint64_t roundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

void placeBlocks(BlockPlacer placer) {
  releaseBlock = placer.release;
  placeBlock = placer.place;
}

std::optional<uint64_t> VaHeap::addBlock(uint64_t bytes) {
  if (const auto place = placeBlock.load())
    if (const uint64_t address = place(bytes)) {
      blocks[address] = {bytes, true};
      return address;
    }
  const std::optional<uint64_t> address = range.take(bytes, blockBytes);
  if (address) blocks[*address] = {bytes, false};
  return address;
}

VaHeap::Spans::iterator VaHeap::findGap(uint64_t bytes, uint64_t alignment) {
  auto best = gaps.end();
  for (auto at = gaps.begin(); at != gaps.end(); ++at) {
    const auto& [base, size] = *at;
    const uint64_t skipped = roundUp(base, alignment) - base;
    if (size >= skipped && size - skipped >= bytes && (best == gaps.end() || size < best->second)) best = at;
  }
  return best;
}

void VaHeap::addGap(uint64_t base, uint64_t bytes) {
  if (bytes > 0) gaps[base] = bytes;
}

std::optional<uint64_t> VaHeap::take(uint64_t bytes, uint64_t alignment) {
  constexpr uint64_t most = uint64_t{1} << 46;
  if (bytes > most || alignment > most) return std::nullopt;
  bytes = roundUp(std::max<uint64_t>(bytes, 1), pieceBytes);
  alignment = std::max(alignment, pieceBytes);
  std::lock_guard lock(mutex);
  auto gap = findGap(bytes, alignment);
  if (gap == gaps.end()) {
    const uint64_t block = roundUp(bytes + (alignment > blockBytes ? alignment : 0), blockBytes);
    const std::optional<uint64_t> base = addBlock(block);
    if (!base) return std::nullopt;
    gap = gaps.emplace(*base, block).first;
  }
  const uint64_t begin = gap->first, end = begin + gap->second, base = roundUp(begin, alignment);
  gaps.erase(gap);
  addGap(begin, base - begin);
  addGap(base + bytes, end - base - bytes);
  taken[base] = bytes;
  return base;
}

void VaHeap::give(uint64_t base) {
  std::lock_guard lock(mutex);
  const auto piece = taken.find(base);
  if (piece == taken.end()) return;  // a reservation at an address that the caller chose
  uint64_t begin = base, end = base + piece->second;
  taken.erase(piece);
  const auto block = std::prev(blocks.upper_bound(base));
  const uint64_t blockBegin = block->first, blockEnd = blockBegin + block->second.bytes;
  if (const auto next = gaps.find(end); next != gaps.end() && end < blockEnd) {
    end += next->second;
    gaps.erase(next);
  }
  if (auto before = gaps.lower_bound(begin); before != gaps.begin() && begin > blockBegin) {
    --before;
    if (before->first + before->second == begin) {
      begin = before->first;
      gaps.erase(before);
    }
  }
  if (begin != blockBegin || end != blockEnd) return addGap(begin, end - begin);
  const Block gone = block->second;
  blocks.erase(block);
  if (!gone.foreign) return range.give(begin);
  if (const auto release = releaseBlock.load()) release(begin, gone.bytes);
}

}  // namespace vgpu::emulator::api
