#include "intercept/session/memory/page-adoption.h"

#include <kj/common.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "intercept/session/memory/mapped-ranges.h"
#include "intercept/session/memory/write-protection.h"
#include "vgpu/wire/arena.h"

namespace vgpu::client {

namespace {

// How much is write-protected at a time; copying it takes about 200 µs.
constexpr uint64_t pieceBytes = 1 * MiB;

std::byte* pointer(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// Copies pages whatever they contain; not by memcpy, which sanitizers check.
void copyPages(void* to, const void* from, uint64_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

// Replaces [address, address + bytes) by private memory with the bytes at `from`.
bool makePrivate(uint64_t address, uint64_t bytes, uint64_t from, int protection) {
  void* copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  copyPages(copy, pointer(from), bytes);
  if (mprotect(copy, bytes, protection) == 0 &&
      mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(address)) != MAP_FAILED)
    return true;
  munmap(copy, bytes);
  return false;
}

int protectionOf(bool isReadOnly) { return isReadOnly ? PROT_READ : PROT_READ | PROT_WRITE; }

// Copies the pages into the arena and maps the arena in their place.
bool exchange(const AdoptedPages& pages, const MemoryFile& arena) {
  copyPages(pointer(pages.arenaAddress), pointer(pages.address), pages.bytes);
  return mmap(pointer(pages.address), pages.bytes, protectionOf(pages.areReadOnly), MAP_SHARED | MAP_FIXED, arena.fd(),
              static_cast<off_t>(pages.arenaAddress - hostArenaBase)) != MAP_FAILED;
}

}  // namespace

PageKind kindOfPages(uint64_t address, uint64_t bytes) {
  uint64_t covered = address;
  bool isPlain = true, anyWritable = false, anyReadOnly = false, anyFile = false;
  auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  forEachMapping(address, bytes, [&](const MappedRange& range) {
    if (range.start <= covered && range.isReadable()) covered = std::max(covered, range.end);
    (range.isWritable() ? anyWritable : anyReadOnly) = true;
    anyFile = anyFile || range.inode != 0;
    const bool isSpecial = range.name.starts_with('[') && range.name != "[heap]" && !range.name.starts_with("[anon");
    const bool isStack = here >= range.start && here < range.end;
    isPlain = isPlain && !range.isShared() && range.mode[2] == '-' && !isSpecial && !isStack;
  });
  if (covered < address + bytes) return PageKind::unmapped;
  // Pages beyond the end of their file cannot be read.
  if (anyReadOnly && madvise(pointer(address), bytes, MADV_POPULATE_READ) != 0) return PageKind::unmapped;
  if (anyReadOnly) return isPlain && !anyWritable ? PageKind::readOnly : PageKind::otherReadOnly;
  return isPlain && !anyFile ? PageKind::adoptable : PageKind::other;
}

bool adoptPages(const AdoptedPages& pages, const MemoryFile& arena) {
  // mremap() with growth (realloc) moves a range only if it is one mapping; growing would expose other memory of the arena behind these
  // pages. Different advice for the last page makes it a mapping of its own, which prevents that; it has no other effect on memory.
  KJ_DEFER(madvise(pointer(pages.address + pages.bytes - hostPageBytes), hostPageBytes, MADV_RANDOM));
  if (pages.areReadOnly) return exchange(pages, arena);
  auto protection = WriteProtection::over(pages.address, pages.bytes);
  if (!protection) return false;
  for (uint64_t done = 0; done < pages.bytes; done += pieceBytes) {
    const AdoptedPages piece{pages.address + done, std::min(pieceBytes, pages.bytes - done), pages.arenaAddress + done};
    if (!protection->during(piece.address, piece.bytes, [&] { return exchange(piece, arena); })) return false;
  }
  return true;
}

namespace {

// A mapping of adopted pages' arena memory outside the arena: at the original addresses, or where the program has moved them with mremap(),
// whole or in part.
struct Mapped {
  uint64_t address, bytes, arenaAddress;
  int protection;
};
bool findMapped(const AdoptedPages& pages, const MemoryFile& arena, std::vector<Mapped>& found) {
  struct stat file {};
  if (fstat(arena.fd(), &file) != 0) return false;
  forEachMapping(0, UINT64_MAX, [&](const MappedRange& range) {
    if (range.inode != file.st_ino || range.device != file.st_dev) return;
    const uint64_t at = hostArenaBase + range.offset;
    const uint64_t start = std::max(at, pages.arenaAddress);
    const uint64_t end = std::min(at + (range.end - range.start), pages.arenaAddress + pages.bytes);
    if (start < end && range.start != at) found.push_back({range.start + (start - at), end - start, start, range.protection()});
  });
  return true;
}

}  // namespace

bool returnPages(const AdoptedPages& pages, const MemoryFile& arena) {
  std::vector<Mapped> mapped;
  if (!findMapped(pages, arena, mapped)) return false;
  for (auto& each : mapped) {
    std::optional<WriteProtection> protection;
    if ((each.protection & PROT_WRITE) != 0 && !(protection = WriteProtection::over(each.address, each.bytes))) return false;
    for (uint64_t done = 0; done < each.bytes; done += pieceBytes) {
      const uint64_t address = each.address + done, bytes = std::min(pieceBytes, each.bytes - done);
      auto replace = [&] { return makePrivate(address, bytes, each.arenaAddress + done, each.protection); };
      if (!(protection ? protection->during(address, bytes, replace) : replace())) return false;
    }
  }
  return true;
}

bool returnPagesInChild(const AdoptedPages& pages, const MemoryFile& arena) {
  std::vector<Mapped> mapped;
  return findMapped(pages, arena, mapped) &&
         std::ranges::all_of(mapped, [](auto& each) { return makePrivate(each.address, each.bytes, each.arenaAddress, each.protection); });
}

}  // namespace vgpu::client
