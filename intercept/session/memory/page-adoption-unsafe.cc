#include "intercept/session/memory/page-adoption.h"

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

// How much is write-protected at a time: about 200 µs of copying.
constexpr uint64_t pieceBytes = 1 * MiB;

std::byte* pointer(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// Pages as they are, whatever the program keeps in them: not memcpy, which sanitizers watch.
void copyPages(void* to, const void* from, uint64_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

// Private memory with the bytes of [address, address + bytes), in its place.
bool makePrivate(uint64_t address, uint64_t bytes, int protection) {
  void* copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  copyPages(copy, pointer(address), bytes);
  if (mprotect(copy, bytes, protection) == 0 &&
      mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(address)) != MAP_FAILED)
    return true;
  munmap(copy, bytes);
  return false;
}

int protectionOf(bool isReadOnly) { return isReadOnly ? PROT_READ : PROT_READ | PROT_WRITE; }

// Copies them into the arena, and maps that in their place.
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
  // Pages behind the end of their file cannot be read.
  if (anyReadOnly && madvise(pointer(address), bytes, MADV_POPULATE_READ) != 0) return PageKind::unmapped;
  if (anyReadOnly) return isPlain && !anyWritable ? PageKind::readOnly : PageKind::otherReadOnly;
  return isPlain && !anyFile ? PageKind::adoptable : PageKind::other;
}

bool adoptPages(const AdoptedPages& pages, const MemoryFile& arena) {
  if (pages.areReadOnly) return exchange(pages, arena);
  auto protection = WriteProtection::over(pages.address, pages.bytes);
  if (!protection) return false;
  for (uint64_t done = 0; done < pages.bytes; done += pieceBytes) {
    const AdoptedPages piece{pages.address + done, std::min(pieceBytes, pages.bytes - done), pages.arenaAddress + done};
    if (!protection->during(piece.address, piece.bytes, [&] { return exchange(piece, arena); })) return false;
  }
  return true;
}

bool returnPages(const AdoptedPages& pages, const MemoryFile& arena) {
  struct stat file {};
  if (fstat(arena.fd(), &file) != 0) return false;
  struct Ours {
    uint64_t start, end;
    bool isWritable;
  };
  std::vector<Ours> ours;
  forEachMapping(pages.address, pages.bytes, [&](const MappedRange& range) {
    uint64_t start = std::max(range.start, pages.address), end = std::min(range.end, pages.address + pages.bytes);
    bool same = range.inode == file.st_ino &&
                hostArenaBase + range.offset + (start - range.start) == pages.arenaAddress + (start - pages.address);
    if (same) ours.push_back({start, end, range.isWritable()});
  });
  for (auto& [start, end, isWritable] : ours) {
    std::optional<WriteProtection> protection;
    if (isWritable && !(protection = WriteProtection::over(start, end - start))) return false;
    for (uint64_t address = start; address < end; address += pieceBytes) {
      uint64_t bytes = std::min(pieceBytes, end - address);
      auto replace = [&] { return makePrivate(address, bytes, protectionOf(!isWritable)); };
      if (!(protection ? protection->during(address, bytes, replace) : replace())) return false;
    }
  }
  return true;
}

bool returnPagesInChild(const AdoptedPages& pages) { return makePrivate(pages.address, pages.bytes, protectionOf(pages.areReadOnly)); }

}  // namespace vgpu::client
