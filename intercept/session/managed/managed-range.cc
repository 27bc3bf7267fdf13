#include "intercept/session/managed/managed-range.h"

#include <algorithm>
#include <new>
#include <utility>

namespace vgpu::client {

namespace {

// In pages. The least that a touch brings, unless it is a single touch: moving it takes 1.5 times as long as moving a page. And the most:
// 16 MiB.
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
  const bool isFirst = pageAccess[page] == HostAccess::none && touches++ == 0;
  size_t begin = page, end = page + 1;  // limits of the run
  if (page == expected) {
    ahead = std::clamp(2 * ahead, piece, mostAhead);
    end = page + ahead;
  } else if (isFirst && touchesBefore == 1 && !pages.isWatched()) {
    ahead = 1;
  } else {
    ahead = piece;
    begin = page / piece * piece;
    end = begin + piece;
  }
  end = std::min(end, pageCount);
  Run run{page, page + 1, pageAccess[page]};
  while (run.begin > begin && pageAccess[run.begin - 1] == run.access) --run.begin;
  while (run.end < end && pageAccess[run.end] == run.access) ++run.end;
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

// Joins adjacent and overlapping parts: a page may have been opened twice, for reading and then for writing.
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
