#include "intercept/session/managed/managed-range.h"

#include <algorithm>

namespace vgpu::client {

namespace {
constexpr size_t mostAhead = 256;  // blocks: 16 MiB of an allocation
}

ManagedRange::ManagedRange(HostPages pages, ByteSpan place, unsigned device, uint64_t blockBytes)
    : place(place),
      device(device),
      pages(std::move(pages)),
      blockBytes(blockBytes),
      blocks((place.bytes + blockBytes - 1) / blockBytes, HostAccess::none) {}

ByteSpan ManagedRange::spanOf(const Run& run) const {
  uint64_t begin = run.begin * blockBytes, end = std::min(run.end * blockBytes, place.bytes);
  return {place.address + begin, end - begin};
}

ManagedRange::Run ManagedRange::touched(uint64_t address) {
  size_t begin = blockOf(address), end = begin + 1;
  ahead = begin == expected ? std::min(2 * ahead, mostAhead) : 1;
  while (end < blocks.size() && end - begin < ahead && blocks[end] == blocks[begin]) ++end;
  expected = end;
  return {begin, end, blocks[begin]};
}

void ManagedRange::expect(uint64_t address) {
  expected = blockOf(address);
  ahead = mostAhead;
}

bool ManagedRange::allow(const Run& run, HostAccess access) {
  ByteSpan span = spanOf(run);
  if (!pages.allow(span.address, span.bytes, run.access, access)) return false;
  std::fill(blocks.begin() + static_cast<ptrdiff_t>(run.begin), blocks.begin() + static_cast<ptrdiff_t>(run.end), access);
  return true;
}

void ManagedRange::allowAll(HostAccess access) {
  pages.allow(place.address, place.bytes, HostAccess::none, access);
  std::ranges::fill(blocks, access);
}

}  // namespace vgpu::client
