#include "stub/worker/blob.h"

#include <sys/mman.h>

#include <algorithm>

#include "vgpu/wire/arena.h"

namespace vgpu::stub {

namespace {
constexpr uint64_t hugePageBytes = 2 * MiB;
}

void Blob::Unmap::operator()(std::byte* room) const { munmap(room, bytes); }

std::optional<Blob> Blob::reserve(Origin origin, uint64_t bytes, Majors majors) {
  size_t roomBytes = bytes + 1;
  void* room =
      mmap(nullptr, roomBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return std::nullopt;
  if (bytes >= hugePageBytes) madvise(room, roomBytes, MADV_HUGEPAGE);  // one page fault for each 2 MiB instead of 512
  return Blob(origin, {static_cast<std::byte*>(room), Unmap{roomBytes}}, bytes, majors);
}

std::span<const std::byte> Blob::bytes() const {
  if (stored) return stored->bytes();
  return {room.get(), announced};
}

const ImageFacts& Blob::facts() const {
  if (stored && (stored->facts().majors & majors) == majors) return stored->facts();
  if (!known) known = findFacts(bytes(), majors);
  return *known;
}

void Blob::append(std::span<const std::byte> piece) {
  std::copy(piece.begin(), piece.end(), room.get() + arrived);
  arrived += piece.size();
}

}  // namespace vgpu::stub
