#include <errno.h>
#include <kj/debug.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "vgpu/wire/guest-mailbox.h"

namespace vgpu {

struct GuestMailbox::Way {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};

namespace {

constexpr uint64_t ringsAt = 4 * KiB, turnBytes = GuestLayout::mailboxBytes / 2;
static_assert(ringsAt + 2 * GuestMailbox::ringBytes <= turnBytes);

// Copies between the ring and a contiguous buffer, in at most two pieces.
template <typename Copy>
void inPieces(uint64_t position, size_t bytes, Copy&& copy) {
  const uint64_t at = position % GuestMailbox::ringBytes;
  const size_t first = std::min<size_t>(bytes, GuestMailbox::ringBytes - at);
  copy(at, 0, first);
  if (bytes > first) copy(0, first, bytes - first);
}

}  // namespace

GuestMailbox::GuestMailbox(int slot, GuestFile::Side side, uint64_t begun)
    : in(side == GuestFile::Side::host ? 0 : 1), out(side == GuestFile::Side::host ? 1 : 0) {
  off_t segment;
  KJ_SYSCALL(segment = lseek(slot, 0, SEEK_CUR));
  const auto at = segment - static_cast<off_t>(GuestLayout::mailboxBytes);
  void* both = mmap(nullptr, GuestLayout::mailboxBytes, PROT_READ | PROT_WRITE, MAP_SHARED, slot, at);
  if (both == MAP_FAILED) KJ_FAIL_SYSCALL("mmap", errno, "a mailbox", at);
  mapped = static_cast<std::byte*>(both);
  start = mapped + begun % 2 * turnBytes;
}

GuestMailbox::~GuestMailbox() { munmap(mapped, GuestLayout::mailboxBytes); }

void GuestMailbox::clear() {
  for (unsigned index : {in, out}) {
    way(index).written.store(0, std::memory_order_relaxed);
    way(index).read.store(0, std::memory_order_relaxed);
  }
}

GuestMailbox::Way& GuestMailbox::way(unsigned index) const { return reinterpret_cast<Way*>(start)[index]; }
std::byte* GuestMailbox::ringOf(unsigned index) const { return start + ringsAt + index * ringBytes; }

size_t GuestMailbox::read(std::span<std::byte> room) {
  const uint64_t written = way(in).written.load(std::memory_order_acquire);
  KJ_REQUIRE(written >= seenWritten && written - taken <= ringBytes, "a mailbox's counters are invalid", written, taken);
  seenWritten = written;
  const size_t bytes = std::min<uint64_t>(room.size(), written - taken);
  inPieces(taken, bytes, [&](uint64_t at, size_t from, size_t some) { std::memcpy(room.data() + from, ringOf(in) + at, some); });
  taken += bytes;
  if (bytes != 0) way(in).read.store(taken, std::memory_order_release);
  return bytes;
}

size_t GuestMailbox::write(std::span<const std::byte> bytes) {
  const uint64_t read = way(out).read.load(std::memory_order_acquire);
  KJ_REQUIRE(read >= seenRead && read <= given, "a mailbox's counters are invalid", read, given);
  seenRead = read;
  const size_t some = std::min<uint64_t>(bytes.size(), ringBytes - (given - read));
  inPieces(given, some, [&](uint64_t at, size_t from, size_t part) { std::memcpy(ringOf(out) + at, bytes.data() + from, part); });
  given += some;
  if (some != 0) way(out).written.store(given, std::memory_order_release);
  return some;
}

}  // namespace vgpu
