#include "vgpu/snapshot/pending-calls.h"

#include <fmt/format.h>
#include <kj/array.h>
#include <kj/debug.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "vgpu/api/effects.h"
#include "vgpu/base/fail.h"

namespace vgpu::snapshot {

namespace {

constexpr char pendingCallsMagic[8] = {'v', 'g', 'p', 'u', 'c', 'a', 'l', 'l'};

struct PendingCallsHeader {
  char magic[8];
  uint64_t rings, slabs;
};

struct SlabHeader {
  uint32_t slab, bytes;
};

// The layout of a FrameHeader, as plain values.
struct FrameStart {
  uint64_t sequence;
  uint32_t bytes;
  uint16_t method, slot;
  uint8_t device, reserved[7];
};
static_assert(sizeof(FrameStart) == sizeof(FrameHeader));

// Calls `visit(header, whole frame)` for each frame of a ring. Returns the number of frames.
template <typename Visit>
uint64_t walk(const PendingRing& ring, Visit visit) {
  uint64_t count = 0, barrier = ring.barrier;
  std::span<const std::byte> frames = ring.frames;
  for (uint64_t at = 0; at < frames.size(); ++count) {
    FrameStart start;
    KJ_REQUIRE(frames.size() - at >= sizeof start, "the ring ends within a frame", barrier + at);
    std::memcpy(&start, &frames[at], sizeof start);
    KJ_REQUIRE(start.sequence == barrier + at + 1, "a pending frame is not complete", barrier + at,
               start.sequence);
    KJ_REQUIRE(start.bytes >= frameUnit && start.bytes <= maxFrameBytes && start.bytes % frameUnit == 0 &&
                   start.bytes <= frames.size() - at,
               "a pending frame has an invalid size", barrier + at, start.bytes);
    KJ_REQUIRE(api::isMethod(start.method) && start.slot < slotCount && start.device == ring.device,
               "a pending frame has an unknown method or slot, or belongs to another device", barrier + at, start.method,
               start.slot, start.device);
    visit(start, frames.subspan(at, start.bytes));
    at += start.bytes;
  }
  return count;
}

// A copy of the frame's message, aligned to words.
kj::Array<capnp::word> messageOf(std::span<const std::byte> frame) {
  auto body = frame.subspan(sizeof(FrameStart));
  auto words = kj::heapArray<capnp::word>(body.size() / sizeof(capnp::word));
  std::memcpy(words.asBytes().begin(), body.data(), words.asBytes().size());
  return words;
}

// Adds the slabs that the ring's frames name, and how many bytes of each they use.
void addSlabsOf(const PendingRing& ring, std::map<uint32_t, uint32_t>& slabs, uint64_t& count) {
  count += walk(ring, [&](const FrameStart& start, std::span<const std::byte> frame) {
    auto method = static_cast<api::Method>(start.method);
    if (api::infoOf(method).slabs.empty()) return;
    api::visitSlabs(method, messageOf(frame), [&](uint64_t slab, uint64_t bytes) {
      if (slab >= slabCount || bytes > slabBytes) return;  // the worker will refuse the frame
      auto& most = slabs[static_cast<uint32_t>(slab)];
      most = std::max(most, static_cast<uint32_t>(bytes));
    });
  });
}

// Copies `value` to the front of `out`, and advances `out` past it.
void put(std::span<std::byte>& out, std::span<const std::byte> value) {
  std::copy(value.begin(), value.end(), out.begin());
  out = out.subspan(value.size());
}

template <typename T>
std::span<const std::byte> bytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::span<const std::byte> take(std::span<const std::byte>& bytes, uint64_t count) {
  KJ_REQUIRE(count <= bytes.size(), "the pending-calls file is truncated", count, bytes.size());
  auto taken = bytes.first(count);
  bytes = bytes.subspan(count);
  return taken;
}

template <typename T>
T takeValue(std::span<const std::byte>& bytes) {
  T value;
  std::memcpy(&value, take(bytes, sizeof value).data(), sizeof value);
  return value;
}

}  // namespace

RingCut PendingCalls::barrier() const {
  RingCut cut;
  for (auto& ring : rings) cut[static_cast<unsigned>(ring.device)] = ring.barrier;
  return cut;
}

PendingCalls capturePendingCalls(const Segment& segment, const RingCut& barrier) {
  PendingCalls pending;
  std::map<uint32_t, uint32_t> slabs;
  for (unsigned device = 0; device < maxDevices; ++device) {
    PendingRing ring{{device, barrier[device], segment.ring(device).head.load()}, {}};
    // A ring that is open but has had no frame is included too, because the program does not open it again.
    const bool isOpen = device != 0 && segment.ring(device).isOpen.load() != 0;
    if (ring.head == 0 && ring.barrier == 0 && !isOpen) continue;
    KJ_REQUIRE(ring.head >= ring.barrier && ring.head - ring.barrier <= ringBytes, "a ring's head is too far from its barrier",
               device, ring.head, ring.barrier);
    const std::byte* start = segment.ringAt(device, ring.barrier);
    ring.frames.assign(start, start + (ring.head - ring.barrier));
    addSlabsOf(ring, slabs, pending.frameCount);
    pending.rings.push_back(std::move(ring));
  }
  for (auto [slab, bytes] : slabs) pending.slabs.push_back({slab, {segment.slab(slab), segment.slab(slab) + bytes}});
  return pending;
}

std::set<api::Method> methodsOf(const PendingCalls& pending) {
  std::set<api::Method> methods;
  for (auto& ring : pending.rings)
    walk(ring, [&](const FrameStart& start, auto) { methods.insert(static_cast<api::Method>(start.method)); });
  return methods;
}

void visitFrames(const PendingCalls& pending, const std::function<void(api::Method, kj::ArrayPtr<const capnp::word>)>& visit) {
  for (auto& ring : pending.rings)
    walk(ring, [&](const FrameStart& start, std::span<const std::byte> frame) {
      visit(static_cast<api::Method>(start.method), messageOf(frame));
    });
}

std::vector<std::byte> encodePendingCalls(const PendingCalls& pending) {
  size_t size = sizeof(PendingCallsHeader);
  for (auto& ring : pending.rings) size += sizeof(RingState) + ring.frames.size();
  for (auto& slab : pending.slabs) size += sizeof(SlabHeader) + slab.bytes.size();
  std::vector<std::byte> whole(size);
  std::span<std::byte> out = whole;
  PendingCallsHeader header{{}, pending.rings.size(), pending.slabs.size()};
  std::copy(std::begin(pendingCallsMagic), std::end(pendingCallsMagic), header.magic);
  put(out, bytesOf(header));
  for (auto& ring : pending.rings) {
    put(out, bytesOf(static_cast<const RingState&>(ring)));
    put(out, ring.frames);
  }
  for (auto& slab : pending.slabs) {
    put(out, bytesOf(SlabHeader{slab.slab, static_cast<uint32_t>(slab.bytes.size())}));
    put(out, slab.bytes);
  }
  return whole;
}

PendingCalls decodePendingCalls(std::span<const std::byte> bytes) {
  auto header = takeValue<PendingCallsHeader>(bytes);
  KJ_REQUIRE(std::equal(std::begin(pendingCallsMagic), std::end(pendingCallsMagic), header.magic), "not a pending-calls file");
  KJ_REQUIRE(header.rings <= maxDevices && header.slabs <= slabCount, "its header is invalid", header.rings, header.slabs);
  PendingCalls pending;
  for (uint64_t i = 0; i < header.rings; ++i) {
    auto part = takeValue<RingState>(bytes);
    bool isNext = part.device < maxDevices && (i == 0 || part.device > pending.rings.back().device);
    KJ_REQUIRE(isNext && part.head >= part.barrier && part.head - part.barrier <= ringBytes && part.barrier % frameUnit == 0,
               "a ring's positions are invalid", part.device, part.barrier, part.head);
    PendingRing ring{part, {}};
    auto frames = take(bytes, part.head - part.barrier);
    ring.frames.assign(frames.begin(), frames.end());
    pending.frameCount += walk(ring, [](auto&, auto) {});
    pending.rings.push_back(std::move(ring));
  }
  for (uint64_t i = 0; i < header.slabs; ++i) {
    auto slab = takeValue<SlabHeader>(bytes);
    KJ_REQUIRE(slab.slab < slabCount && slab.bytes <= slabBytes, "a slab's number or size is invalid", slab.slab, slab.bytes);
    auto content = take(bytes, slab.bytes);
    pending.slabs.push_back({slab.slab, {content.begin(), content.end()}});
  }
  KJ_REQUIRE(bytes.empty(), "there is data after its end", bytes.size());
  return pending;
}

void requireSamePlace(const PendingCalls& pending, const Segment& segment) {
  RingCut barrier = pending.barrier(), head;
  for (auto& ring : pending.rings) head[static_cast<unsigned>(ring.device)] = ring.head;
  bool isUnused = true;
  for (unsigned device = 0; device < maxDevices; ++device) isUnused = isUnused && segment.ring(device).head.load() == 0;
  if (isUnused) return;
  for (unsigned device = 0; device < maxDevices; ++device) {
    uint64_t from = segment.ring(device).tail.load(), to = segment.ring(device).head.load();
    if (from == barrier[device] && to == head[device]) continue;
    fail(fmt::format(
        "the snapshot does not match the state in which the program waits: it holds the calls to device {} at positions {} to {}, the "
        "program waits with those at {} to {}. Resume the snapshot of its last suspend",
        device, barrier[device], head[device], from, to));
  }
}

void putBack(const PendingCalls& pending, const Segment& segment) {
  for (auto& slab : pending.slabs) {
    std::copy(slab.bytes.begin(), slab.bytes.end(), segment.slab(slab.slab));
    uint32_t free = 0;  // the program's own segment has this generation already
    segment.slabState(slab.slab).busy.compare_exchange_strong(free, 1);
  }
  for (auto& ring : pending.rings) {
    auto device = static_cast<unsigned>(ring.device);
    auto at = [&](const FrameStart& start) { return segment.ringAt(device, start.sequence - 1); };
    walk(ring, [&](const FrameStart& start, std::span<const std::byte> frame) {
      std::copy(frame.begin() + sizeof start.sequence, frame.end(), at(start) + sizeof start.sequence);
    });
    segment.ring(device).tail.store(ring.barrier);
    segment.ring(device).head.store(ring.head);
    segment.ring(device).isOpen.store(1);
    walk(ring, [&](const FrameStart& start, std::span<const std::byte>) {
      std::memcpy(at(start), &start.sequence, sizeof start.sequence);
    });
  }
}

}  // namespace vgpu::snapshot
