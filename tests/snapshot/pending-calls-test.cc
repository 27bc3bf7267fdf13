#include "vgpu/snapshot/pending-calls.h"

#include <doctest/doctest.h>

#include <cstring>

#include "../files.h"
#include "vgpu/wire/ring.h"

using namespace vgpu;
using namespace vgpu::snapshot;
using namespace vgpu::test;

namespace {

std::atomic<bool> never{false};

void post(const Segment& segment, const RecordedFrame& frame, uint16_t slot = 3) {
  RingWriter writer(segment);
  auto place = *writer.reserve(frame.words.size(), never);
  std::memcpy(place.body(), frame.words.begin(), frame.words.asBytes().size());
  writer.publish(place, frame.method, slot);
}

constexpr api::Place memory = api::Place::address(4096);

RecordedFrame fromSlab(uint32_t slab, uint64_t width, uint64_t height = 0, uint64_t depth = 0) {
  return copy3d(memory, api::Place::slab(slab), width, height, depth);
}

RecordedFrame blobWrite(uint32_t slab, uint32_t bytes) {
  return makeFrame<api::Cuda::BlobWriteParams>(0, api::Method::blobWrite, 0, [&](auto p) {
    p.setSlab(slab);
    p.setBytes(bytes);
  });
}

RingCut firstRingAt(uint64_t position) {
  RingCut cut;
  cut[0] = position;
  return cut;
}

// A segment with three consumed frames and some that are not.
struct Ring {
  Ring() {
    RingReader reader(segment, 0);
    for (uint64_t i = 0; i < 3; i++) {
      post(segment, memAlloc(0, 4096 * i));
      REQUIRE(reader.next());
      reader.release();
    }
    barrier = reader.position();
  }
  Segment segment{Segment::create()};
  uint64_t barrier;
};

std::vector<std::string> framesFrom(const Segment& segment, uint64_t position) {
  RingReader reader(segment, position);
  std::vector<std::string> frames;
  while (auto frame = reader.next()) {
    frames.push_back(std::to_string(frame->position) + " " + std::to_string(static_cast<int>(frame->method)) + " " +
                     std::to_string(frame->slot) + " " +
                     std::string(frame->words.asChars().begin(), frame->words.asChars().end()));
    reader.release();
  }
  return frames;
}

}  // namespace

TEST_CASE("the pending calls of a ring execute in another segment as they would have here") {
  Ring ring;
  for (uint64_t i = 0; i < 50; i++) post(ring.segment, memAlloc(0, 4096 * i), static_cast<uint16_t>(i));
  post(ring.segment, fromSlab(7, 1000));
  post(ring.segment, fromSlab(7, 500));
  auto content = randomBytes(slabBytes, 1);
  std::memcpy(ring.segment.slab(7), content.data(), content.size());
  ring.segment.slabState(7).busy = 1;

  PendingCalls pending = capturePendingCalls(ring.segment, firstRingAt(ring.barrier));
  CHECK(pending.frameCount == 52);
  REQUIRE(pending.slabs.size() == 1);
  CHECK(pending.slabs[0].slab == 7);
  CHECK(pending.slabs[0].bytes.size() == 1000);
  PendingCalls read = decodePendingCalls(encodePendingCalls(pending));
  CHECK(read.frameCount == 52);

  Segment other{Segment::create()};
  requireSamePlace(read, other);
  putBack(read, other);
  CHECK(other.ring(0).head == ring.segment.ring(0).head);
  CHECK(other.ring(0).tail == ring.barrier);
  CHECK(other.slabState(7).busy == 1);
  CHECK(std::memcmp(other.slab(7), content.data(), 1000) == 0);
  auto frames = framesFrom(other, ring.barrier);
  CHECK(frames.size() == 52);
  CHECK(frames == framesFrom(ring.segment, ring.barrier));
  // And the ring continues after them.
  post(other, memAlloc(0, 1));
  CHECK(framesFrom(other, pending.rings[0].head).size() == 1);
}

TEST_CASE("pending calls include the slabs that a frame names, with the bytes that it reads") {
  Ring ring;
  post(ring.segment, fromSlab(9, 50, 3, 2));
  post(ring.segment, fromSlab(11, 50, 3, 0));  // one slice
  post(ring.segment, blobWrite(12, 70));
  post(ring.segment, copy3d(memory, memory, 80));  // names no slab
  post(ring.segment, copy3dBack(api::Place::slab(10), memory, 100, 3));
  auto content = randomBytes(slabBytes, 2);
  for (uint32_t slab : {9, 11, 12}) std::memcpy(ring.segment.slab(slab), content.data(), content.size());
  Segment other{Segment::create()};
  PendingCalls pending = decodePendingCalls(encodePendingCalls(capturePendingCalls(ring.segment, firstRingAt(ring.barrier))));
  CHECK(pending.slabs.size() == 4);
  putBack(pending, other);
  CHECK(other.slabState(9).busy == 1);
  CHECK(std::memcmp(other.slab(9), content.data(), 300) == 0);
  CHECK(other.slab(9)[300] == std::byte{0});
  CHECK(std::memcmp(other.slab(11), content.data(), 150) == 0);
  CHECK(other.slab(11)[150] == std::byte{0});
  CHECK(std::memcmp(other.slab(12), content.data(), 70) == 0);
  CHECK(other.slab(12)[70] == std::byte{0});
  CHECK(other.slabState(10).busy == 1);
}

TEST_CASE("pending calls that wrap around the ring's end are complete") {
  Segment segment{Segment::create()};
  uint64_t position = 0;
  {
    RingReader reader(segment, 0);
    while (position < ringBytes - 1000) {
      post(segment, memAlloc(0, 1));
      reader.next();
      reader.release();
      position = reader.position();
    }
  }
  for (uint64_t i = 0; i < 100; i++) post(segment, memAlloc(0, i));
  PendingCalls pending = decodePendingCalls(encodePendingCalls(capturePendingCalls(segment, firstRingAt(position))));
  CHECK(pending.frameCount == 100);
  Segment other{Segment::create()};
  putBack(pending, other);
  CHECK(framesFrom(other, position) == framesFrom(segment, position));
}

TEST_CASE("a ring without pending calls gives an empty list") {
  Ring ring;
  PendingCalls pending = decodePendingCalls(encodePendingCalls(capturePendingCalls(ring.segment, firstRingAt(ring.barrier))));
  CHECK(pending.frameCount == 0);
  CHECK(pending.rings[0].frames.empty());
}

TEST_CASE("the pending calls of each ring return to that ring") {
  Segment segment{Segment::create()};
  RingWriter first(segment, 0), third(segment, 2);
  auto send = [](RingWriter& writer, uint16_t slot) { writer.publish(*writer.reserve(9, never), api::Method::nothing, slot); };
  for (uint16_t slot : {1, 2, 3}) send(first, slot);
  for (uint16_t slot : {4, 5}) send(third, slot);
  RingReader reader(segment, 0, 2);
  REQUIRE(reader.next()->slot == 4);
  reader.release();
  RingCut barrier;
  barrier[2] = reader.position();
  PendingCalls pending = decodePendingCalls(encodePendingCalls(capturePendingCalls(segment, barrier)));
  CHECK(pending.frameCount == 4);
  CHECK(pending.rings.size() == 2);
  CHECK_NOTHROW(requireSamePlace(pending, segment));
  Segment other{Segment::create()};
  putBack(pending, other);
  CHECK(framesFrom(other, 0).size() == 3);
  RingReader rest(other, barrier[2], 2);
  CHECK(rest.next()->slot == 5);
  rest.release();
  CHECK_FALSE(rest.next());
  send(third, 6);
  CHECK_THROWS_WITH_AS(requireSamePlace(pending, segment), doctest::Contains("calls to device 2"), kj::Exception);
}

TEST_CASE("pending calls are put back only at their own position") {
  Ring ring;
  post(ring.segment, memAlloc(0, 1));
  PendingCalls pending = capturePendingCalls(ring.segment, firstRingAt(ring.barrier));
  requireSamePlace(pending, ring.segment);
  post(ring.segment, memAlloc(0, 2));
  CHECK_THROWS_WITH_AS(requireSamePlace(pending, ring.segment), doctest::Contains("does not match the state in which the program waits"),
                       kj::Exception);
}

TEST_CASE("a ring that a hostile program has changed is refused") {
  auto refused = [](auto change) {
    Ring ring;
    post(ring.segment, memAlloc(0, 1));
    post(ring.segment, fromSlab(1, 10));
    change(ring);
    CHECK_THROWS_AS(capturePendingCalls(ring.segment, firstRingAt(ring.barrier)), kj::Exception);
  };
  refused([](Ring& ring) { ring.segment.ring(0).head = 0; });
  refused([](Ring& ring) { ring.segment.ring(0).head += ringBytes; });
  refused([](Ring& ring) { ring.segment.ring(0).head += 1; });
  refused([](Ring& ring) { ring.segment.ring(0).head += 64; });  // claims a frame that was never completed
  refused([](Ring& ring) { std::memset(ring.segment.ringAt(0, ring.barrier), 0, 8); });
  refused([](Ring& ring) { std::memset(ring.segment.ringAt(0, ring.barrier) + 8, 0xff, 4); });  // the frame's size
  refused([](Ring& ring) { std::memset(ring.segment.ringAt(0, ring.barrier) + 8, 0, 4); });
  refused([](Ring& ring) { std::memset(ring.segment.ringAt(0, ring.barrier) + 12, 0xff, 2); });        // its method
  refused([](Ring& ring) { std::memset(ring.segment.ringAt(0, ring.barrier + 64) + 24, 0xff, 40); });  // its message
}

TEST_CASE("an invalid slab number or size is left for the worker to refuse") {
  Ring ring;
  post(ring.segment, fromSlab(slabCount, 10));
  post(ring.segment, fromSlab(3, slabBytes + 1));
  post(ring.segment, fromSlab(4, slabBytes, 2, 1));
  post(ring.segment, fromSlab(5, uint64_t{1} << 32, uint64_t{1} << 32, 1));
  post(ring.segment, fromSlab(6, 1024, 1024, 2));
  PendingCalls pending = capturePendingCalls(ring.segment, firstRingAt(ring.barrier));
  CHECK(pending.frameCount == 5);
  CHECK(pending.slabs.empty());
}

TEST_CASE("reading a changed or truncated pending-calls file never leaves its bounds") {
  Ring ring;
  for (uint64_t i = 0; i < 3; i++) post(ring.segment, memAlloc(0, 4096 * i));
  post(ring.segment, fromSlab(7, 100));
  auto good = encodePendingCalls(capturePendingCalls(ring.segment, firstRingAt(ring.barrier)));
  for (size_t bit = 0; bit < good.size() * 8; bit++) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    try {
      PendingCalls pending = decodePendingCalls(bad);
      for (auto& ring : pending.rings) CHECK(ring.head - ring.barrier == ring.frames.size());
    } catch (const kj::Exception&) {
    }
  }
  for (size_t size = 0; size < good.size(); size++)
    CHECK_THROWS_AS(decodePendingCalls(std::span(good).first(size)), kj::Exception);
}
