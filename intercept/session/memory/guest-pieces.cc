#include "intercept/session/memory/guest-pieces.h"

#include <kj/debug.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "vgpu/api/wire-value.h"
#include "vgpu/base/ranges.h"

namespace vgpu::client {
namespace {

// For a program that uses such memory with O_DIRECT, or a machine that maps it uncached (docs/virtual-machines.md).
bool areWanted() {
  const char* copies = getenv("VGPU_PINNED_COPIES");
  return copies == nullptr || atoi(copies) == 0;
}

uint64_t bytesOf(const MemoryFile& segment) {
  struct stat status;
  if (!segment.isPiece() || !areWanted()) return 0;
  KJ_SYSCALL(fstat(segment.fd(), &status));
  return static_cast<uint64_t>(status.st_size);
}

bool overlap(const GuestLocks::Range& one, const GuestLocks::Range& other) {
  return one.place < other.end() && other.place < one.end();
}

}  // namespace

GuestPieces::GuestPieces(const MemoryFile& segment)
    : segment(segment), locks(segment.fd(), GuestLocks::Side::guest), memoryBytes(bytesOf(segment)) {}

GuestPieces::~GuestPieces() {
  while (!pieces.empty()) drop(pieces.begin()->first);
}

// The file locks do not show what this session itself holds: its slot and its pieces. These are skipped here.
std::optional<GuestLocks::Range> GuestPieces::findFree(uint64_t bytes, uint64_t below) const {
  const GuestLocks::Range all = GuestLayout::pieces(memoryBytes);
  const GuestLocks::Range slot = GuestLayout::slot(GuestLayout::slotOf(segment.offset()));
  uint64_t end = std::min(below, all.end());
  while (end >= all.place + bytes) {
    const GuestLocks::Range wanted{end - bytes, bytes};
    std::optional<GuestLocks::Range> taken = locks.findOthers(wanted);
    if (overlap(slot, wanted)) taken = slot;
    for (auto& [address, piece] : pieces)
      if (overlap(piece, wanted)) taken = piece;
    if (!taken) return wanted;
    end = taken->place;
  }
  return std::nullopt;
}

std::optional<uint64_t> GuestPieces::take(uint64_t address, uint64_t bytes, uint64_t below) {
  if (!canBe(bytes)) return std::nullopt;
  std::lock_guard lock(mutex);
  auto found = findFree(bytes, below);
  while (found && !locks.tryLock(*found)) found = findFree(bytes, below);  // another program took it
  if (!found) return std::nullopt;
  void* wanted = fromWire<void*>(address);
  void* mapped = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, segment.fd(),
                      static_cast<off_t>(found->place));
  if (mapped != wanted) {
    if (mapped != MAP_FAILED) munmap(mapped, bytes);
    locks.unlock(*found);
    return std::nullopt;
  }
  madvise(mapped, bytes, MADV_DONTDUMP);
  pieces.emplace(address, *found);
  return found->place;
}

void GuestPieces::drop(uint64_t address) {
  std::lock_guard lock(mutex);
  auto found = pieces.find(address);
  if (found == pieces.end()) return;
  munmap(fromWire<void*>(address), found->second.bytes);
  locks.unlock(found->second);
  pieces.erase(found);
}

bool GuestPieces::hold(uint64_t address) const {
  if (!canBe()) return false;
  std::lock_guard lock(mutex);
  return holding(pieces, address) != pieces.end();
}

}  // namespace vgpu::client
