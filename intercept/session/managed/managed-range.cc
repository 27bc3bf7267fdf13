#include "intercept/session/managed/managed-range.h"

#include <algorithm>
#include <new>
#include <utility>

namespace vgpu::client {

namespace {

// In pages. What a touch brings at least, if it is not the only one: to move it takes half as long again as to move a page. And at
// most: 16 MiB.
constexpr size_t piece = 64 * KiB / hostPageBytes, mostAhead = 256 * piece;

static_assert(HostAccess{} == HostAccess::none);

}  // namespace

ManagedRange::ManagedRange(HostPages pages, ByteSpan place, unsigned device)
    : place(place),
      device(device),
      pages(std::move(pages)),
      pageCount((place.bytes + hostPageBytes - 1) / hostPageBytes),
      pageAccess(static_cast<HostAccess*>(std::calloc(pageCount, sizeof(HostAccess)))) {
  if (!pageAccess) throw std::bad_alloc();
}

ByteSpan ManagedRange::spanOf(const Run& run) const {
  uint64_t begin = run.begin * hostPageBytes, end = std::min(run.end * hostPageBytes, place.bytes);
  return {place.address + begin, end - begin};
}

ManagedRange::Run ManagedRange::touched(uint64_t address) {
  const size_t page = pageOf(address);
  const bool goesOn = page == expected, isFirst = pageAccess[page] == HostAccess::none && touches++ == 0;
  ahead = goesOn ? std::clamp(2 * ahead, piece, mostAhead) : isFirst && touchesBefore == 1 ? 1 : piece;
  Run run{page, page + 1, pageAccess[page]};
  auto isAlike = [&](size_t other) { return pageAccess[other] == run.access; };
  if (!goesOn && ahead == piece)
    while (run.begin % piece != 0 && isAlike(run.begin - 1)) --run.begin;
  const size_t end = std::min(pageCount, goesOn || ahead == 1 ? page + ahead : page / piece * piece + piece);
  while (run.end < end && isAlike(run.end)) ++run.end;
  expected = run.end;
  return run;
}

void ManagedRange::expect(uint64_t address) {
  expected = pageOf(address);
  ahead = mostAhead;
}

bool ManagedRange::allow(const Run& run, HostAccess access) {
  ByteSpan span = spanOf(run);
  if (!pages.allow(span.address, span.bytes, run.access, access)) return false;
  std::fill(&pageAccess[run.begin], &pageAccess[run.end], access);
  opened.push_back(run);
  return true;
}

// One part for what follows each other, which may have been opened twice: to be read, and then to be written.
void ManagedRange::joinOpened() {
  std::ranges::sort(opened, {}, &Run::begin);
  size_t parts = 0;
  for (auto& run : opened) {
    if (parts > 0 && run.begin <= opened[parts - 1].end) {
      opened[parts - 1].end = std::max(opened[parts - 1].end, run.end);
    } else {
      opened[parts++] = run;
    }
  }
  opened.resize(parts);
}

void ManagedRange::takeAll() {
  pages.allow(place.address, place.bytes, HostAccess::none, HostAccess::none);
  for (auto& run : opened) std::fill(&pageAccess[run.begin], &pageAccess[run.end], HostAccess::none);
  opened.clear();
  touchesBefore = std::exchange(touches, 0);
}

}  // namespace vgpu::client
