#include "tools/relay/guest-stream.h"

#include <fcntl.h>
#include <kj/debug.h>

#include <algorithm>

#include "tools/common/reason.h"

namespace vgpu::relay {
namespace {

using std::chrono::nanoseconds;

constexpr uint64_t leastSleep = 50'000, mostSleepOfStream = 10'000'000;  // nanoseconds

}  // namespace

MemoryFile GuestPlace::segment() const {
  int fd;
  KJ_SYSCALL(fd = fcntl(locked, F_DUPFD_CLOEXEC, 0));
  return adoptSegment(fd);
}

GuestStream::GuestStream(const GuestPlace& place, GuestFile::Side side)
    : place(place),
      side(side),
      begun(side == GuestFile::Side::host ? place.begun : place.words().begun.load(std::memory_order_acquire)),
      mailbox(place.locked, side, begun) {}

std::unique_ptr<GuestStream> GuestStream::beginAnew(GuestPlace& place) {
  GuestMailbox(place.locked, GuestFile::Side::host, ++place.begun).clear();
  place.words().begun.store(place.begun, std::memory_order_release);
  return std::make_unique<GuestStream>(place, GuestFile::Side::host);
}

// Not the half of the mailbox that the machine uses. Whatever the machine has written into the table harms only its own session.
std::unique_ptr<GuestStream> GuestStream::beginHere(GuestPlace& place, bool isAgain) {
  GuestSlot& words = place.words();
  const uint64_t brought = words.begun.load(std::memory_order_acquire);
  const bool stands = isAgain && brought == place.begun;
  uint64_t next = std::max(place.begun, brought) + 1;
  if (stands || next % 2 == brought % 2) ++next;
  place.begun = next - 1;
  words.claimed.store(place.claim, std::memory_order_release);
  words.served.store(place.claim, std::memory_order_release);
  return beginAnew(place);
}

bool GuestStream::isOutdated() const { return place.words().begun.load(std::memory_order_acquire) != begun; }

void GuestStream::sayReceived(uint64_t messages) { write(std::as_bytes(std::span(&messages, 1))); }

// The eight bytes are written in one piece.
std::optional<uint64_t> GuestStream::hearReceived() {
  uint64_t messages;
  if (read(std::as_writable_bytes(std::span(&messages, 1))) != sizeof messages) return std::nullopt;
  return messages;
}

std::string GuestStream::whyGone() const {
  const GuestSlot& words = place.words();
  const bool isClaimed = words.claimed.load(std::memory_order_acquire) == place.claim;
  if (side == GuestFile::Side::host) {
    if (!isClaimed || words.released.load(std::memory_order_acquire) == place.claim)
      return "the machine has ended the session";
    return "";
  }
  if (isOutdated()) return "the host has reset the session's mailbox";
  if (!isClaimed || words.ended.load(std::memory_order_acquire) == place.claim) return "the host has ended the session";
  return "";
}

size_t GuestStream::read(std::span<std::byte> room) {
  size_t bytes = 0;
  const std::string gone = whyGone();                    // checked first: what was written before the end is still read
  if (side == GuestFile::Side::guest && isOutdated()) {  // the mailbox now belongs to another stream
    endReading(gone);
    return 0;
  }
  auto caught = kj::runCatchingExceptions([&] { bytes = mailbox.read(room); });
  KJ_IF_MAYBE (exception, caught) {
    endReading(reasonOf(*exception));
  }
  if (bytes == 0 && !room.empty() && !gone.empty()) endReading(gone);
  note(bytes);
  return bytes;
}

size_t GuestStream::write(std::span<const std::byte> given) {
  size_t bytes = 0;
  auto caught = kj::runCatchingExceptions([&] { bytes = mailbox.write(given); });
  KJ_IF_MAYBE (exception, caught) {
    endWriting(reasonOf(*exception));
  }
  note(bytes);
  return bytes;
}

void GuestStream::note(size_t bytes) {
  if (bytes != 0) moved = std::chrono::steady_clock::now();
}

uint64_t GuestStream::mostSleep() const {
  const auto idle = std::chrono::duration_cast<nanoseconds>(std::chrono::steady_clock::now() - moved).count();
  return std::clamp(static_cast<uint64_t>(idle) / 16, leastSleep, mostSleepOfStream);
}

}  // namespace vgpu::relay
