#include <kj/debug.h>

#include <cstring>

#include "vgpu/wire/futex.h"
#include "vgpu/wire/ring-tap.h"

namespace vgpu {

namespace {
FrameHeader& headerAt(std::byte* frame) { return *reinterpret_cast<FrameHeader*>(frame); }
}  // namespace

RingTap::RingTap(const Segment& segment, unsigned device)
    : segment(segment),
      device(device),
      header(segment.ring(device)),
      cursor(header.tail.load()),
      tail(cursor),
      copy(new std::byte[maxFrameBytes]) {}

std::optional<std::span<const std::byte>> RingTap::next() {
  std::byte* at = segment.ringAt(device, cursor);
  FrameHeader& shared = headerAt(at);
  uint64_t sequence = cursor - tail < ringBytes ? shared.sequence.load(std::memory_order_acquire) : 0;
  if (sequence == 0) return std::nullopt;
  KJ_REQUIRE(sequence == cursor + 1, "a frame with another position's sequence number", sequence, cursor);
  uint32_t bytes = *const_cast<volatile uint32_t*>(&shared.bytes);  // read once: the program may change it at any time
  KJ_REQUIRE(bytes >= frameUnit && bytes <= maxFrameBytes && bytes % frameUnit == 0 && bytes <= tail + ringBytes - cursor,
             "a frame has an invalid size", bytes);
  std::memcpy(copy.get(), at, bytes);
  std::memcpy(copy.get() + offsetof(mirror::FrameStart, bytes), &bytes, sizeof bytes);
  cursor += bytes;
  return std::span(copy.get(), bytes);
}

// As RingReader::release() does.
void RingTap::release(uint64_t end) {
  KJ_REQUIRE(end >= tail && end <= cursor, "the worker consumed calls that it was not sent", end, cursor);
  std::memset(segment.ringAt(device, tail), 0, end - tail);
  tail = end;
  header.tail.store(tail);  // seq_cst: must not be reordered after the load of writersWaiting
  if (header.writersWaiting.load() != 0) {
    header.ringFull.fetch_add(1);
    futexWake(header.ringFull);
  }
}

// As in RingReader::sleep(): the two fetch-adds on `head` are ordered, so either the writer sees the flag or we see its frame.
bool RingTap::prepareToSleep() {
  header.consumerSleeping.store(1, std::memory_order_relaxed);
  return header.head.fetch_add(0, std::memory_order_acq_rel) == cursor;
}

}  // namespace vgpu
