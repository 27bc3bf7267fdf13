#include "vgpu/wire/ring.h"

#include <kj/debug.h>

#include <algorithm>
#include <cstring>

#include "vgpu/wire/futex.h"

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_release(void* address);
#endif

namespace vgpu {

namespace {

// Thread sanitizer does not see the consumer, another process, which reads the frame before it raises `tail`: this tells it that a load of
// `tail` happens after the writes of the frame.
void noteFrame([[maybe_unused]] std::atomic<uint64_t>& tail) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(&tail);
#endif
}

FrameHeader& headerAt(std::byte* frame) { return *reinterpret_cast<FrameHeader*>(frame); }

}  // namespace

bool RingWriter::awaitRoom(uint64_t end, const std::atomic<bool>& abandoned) const {
  Backoff backoff;
  uint64_t tail;
  while (end - (tail = header.tail.load(std::memory_order_acquire)) > ringBytes) {
    if (abandoned.load(std::memory_order_relaxed)) return false;
    if (backoff.spin()) continue;
    uint32_t seen = header.ringFull.load();
    header.writersWaiting.fetch_add(1);
    if (end - header.tail.load() > ringBytes) sleepOn(waking, header.ringFull, seen, 1'000'000);
    header.writersWaiting.fetch_sub(1);
  }
  knownTail.store(tail, std::memory_order_release);
  return true;
}

void RingWriter::publish(const Reservation& frame, api::Method method, uint16_t slot) const {
  FrameHeader& own = headerAt(frame.frame);
  own.bytes = frame.bytes;
  own.method = static_cast<uint16_t>(method);
  own.slot = slot;
  own.device = device;
  own.sequence.store(frame.sequence(), std::memory_order_release);
  noteFrame(header.tail);
  wakeConsumer();
  // The zeros that later frames overwrite are in the cache of the consumer's core. Prefetching them now makes them available to the call
  // after the next one: one call ahead would be too short for all cache lines of a frame.
  const std::byte* later = frame.frame + 2 * frame.bytes;
  for (uint64_t line = 0; line < 4; ++line) __builtin_prefetch(later + line * frameUnit, 1);
}

// The writer that clears the flag wakes the consumer; other writers need not, even if the wake-up takes long.
void RingWriter::ringBell() const {
  if (!header.consumerSleeping.exchange(0)) return;
  header.doorbell.fetch_add(1);
  wakeSleepers(waking, header.doorbell);  // two relays may sleep there while a session moves
}

RingReader::RingReader(const Segment& segment, uint64_t position, unsigned device)
    : segment(segment),
      device(device),
      header(segment.ring(device)),
      tail(position),
      copy(new std::byte[aheadBytes + maxFrameBytes]) {
  header.tail.store(position, std::memory_order_release);
}

std::optional<Frame> RingReader::next() {
  std::optional<Frame> frame = copyAt(tail);
  if (frame) current = frame->bytes;
  return frame;
}

std::optional<Frame> RingReader::after(const Frame& frame) {
  uint64_t position = frame.position + frame.bytes;
  if (position - tail > aheadBytes) return std::nullopt;
  return copyAt(position);
}

std::optional<uint16_t> RingReader::methodAfter(const Frame& frame) const {
  FrameHeader& shared = headerAt(at(frame.position + frame.bytes));
  if (shared.sequence.load(std::memory_order_acquire) == 0) return std::nullopt;
  return *const_cast<volatile uint16_t*>(&shared.method);
}

std::optional<Frame> RingReader::copyAt(uint64_t position) {
  FrameHeader& shared = headerAt(at(position));
  uint64_t sequence = shared.sequence.load(std::memory_order_acquire);
  if (sequence == 0) return std::nullopt;
  KJ_REQUIRE(sequence == position + 1, "a frame with another position's sequence number", sequence, position);
  uint32_t bytes = *const_cast<volatile uint32_t*>(&shared.bytes);  // read once: the program may change it at any time
  KJ_REQUIRE(bytes >= frameUnit && bytes <= maxFrameBytes && bytes % frameUnit == 0, "a frame has an invalid size",
             bytes);
  std::byte* to = copy.get() + (position - tail);
  std::memcpy(to, at(position), bytes);
  // While this frame is executed, its cache lines become exclusive to this core, so that zeroing them does not wait; the next frame's lines
  // are fetched too.
  for (uint64_t line = 0; line < 2; ++line) __builtin_prefetch(at(position) + line * frameUnit, 1);
  for (uint64_t line = 0; line < 4; ++line) __builtin_prefetch(at(position + bytes) + line * frameUnit);
  const FrameHeader& mine = headerAt(to);
  KJ_REQUIRE(mine.method < api::methodCount, "a frame of an unknown method", mine.method);
  KJ_REQUIRE(mine.slot < slotCount && mine.device == device, "a frame of an unknown slot, or of another device", mine.slot,
             mine.device);
  auto* words = reinterpret_cast<const capnp::word*>(to + sizeof(FrameHeader));
  return Frame{position,  bytes,       static_cast<api::Method>(mine.method),
               mine.slot, mine.device, kj::arrayPtr(words, (bytes - sizeof(FrameHeader)) / sizeof(capnp::word))};
}

void RingReader::release(uint64_t end) {
  std::memset(at(tail), 0, end - tail);
  tail = end;
  header.tail.store(tail);  // seq_cst: must not be reordered after the load of writersWaiting
  if (header.writersWaiting.load() != 0) {
    header.ringFull.fetch_add(1);
    wakeSleepers(segment.waking(), header.ringFull);
  }
}

void RingReader::sleep(uint32_t bell, uint64_t nanoseconds) {
  header.consumerSleeping.store(1, std::memory_order_relaxed);
  bool writersAreAtWork = header.head.fetch_add(0, std::memory_order_acq_rel) != tail;
  if (headerAt(at(tail)).sequence.load(std::memory_order_acquire) == 0)
    sleepOn(segment.waking(), header.doorbell, bell, writersAreAtWork ? std::min<uint64_t>(nanoseconds, 1'000'000) : nanoseconds);
  header.consumerSleeping.store(0);
}

void RingReader::awaitBell(uint32_t bell, uint64_t nanoseconds) { sleepOn(segment.waking(), header.doorbell, bell, nanoseconds); }

void RingReader::wake() {
  header.doorbell.fetch_add(1);
  wakeSleepers(segment.waking(), header.doorbell);
}

}  // namespace vgpu
