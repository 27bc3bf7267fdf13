// Frames of several rings that await each other (docs/ring.md), with the worker's rule for consumers: an await is executed when the awaited
// ring's consumer has executed all frames before the awaited position.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "vgpu/wire/ring.h"

using namespace vgpu;

namespace {

constexpr unsigned ringCount = 3, writerCount = 4;

// A link of a writer's chain of frames: each awaits the previous one, whichever rings they are in.
struct Link {
  uint64_t writer, number;
};
struct Await {
  uint64_t ring, position;
};

struct Rings {
  Segment segment{Segment::create()};
  std::vector<std::unique_ptr<RingWriter>> writers;
  std::array<std::atomic<uint64_t>, ringCount> executed{};
  std::array<uint64_t, writerCount> chains{};  // progress of each chain; not atomic, because the awaits order the consumers' accesses
  std::atomic<bool> never{false};
  std::atomic<uint64_t> broken{0};  // links that were executed out of order

  Rings() {
    for (unsigned ring = 0; ring < ringCount; ++ring) writers.push_back(std::make_unique<RingWriter>(segment, ring));
  }
  template <typename Body>
  void send(unsigned ring, api::Method method, const Body& body) {
    auto place = writers[ring]->reserve(sizeof body / 8, never);
    std::memcpy(place->body(), &body, sizeof body);
    writers[ring]->publish(*place, method, 0);
  }
  // Writes `count` links, each in a random ring and behind the previous one.
  void write(uint64_t writer, uint64_t count) {
    std::mt19937 random(static_cast<unsigned>(writer));
    unsigned last = 0;
    for (uint64_t number = 1; number <= count; ++number) {
      unsigned ring = random() % 4 == 0 ? random() % ringCount : last;
      if (ring != last)
        send(ring, api::Method::awaitRing, Await{last, segment.ring(last).head.load(std::memory_order_acquire)});
      send(ring, api::Method::nothing, Link{writer, number});
      last = ring;
    }
  }
  template <typename Body>
  static Body bodyOf(const Frame& frame) {
    Body body;
    std::memcpy(&body, frame.words.begin(), sizeof body);
    return body;
  }
  void consume(unsigned ring, const std::atomic<bool>& stop) {
    RingReader reader(segment, executed[ring].load(), ring);
    for (std::optional<Frame> frame; !stop.load(std::memory_order_relaxed);) {
      if (!frame) frame = reader.next();
      if (!frame || !canBeExecuted(*frame)) {
        std::this_thread::yield();
        continue;
      }
      if (frame->method == api::Method::nothing) {
        auto link = bodyOf<Link>(*frame);
        if (chains[link.writer] + 1 != link.number) ++broken;
        chains[link.writer] = link.number;
      }
      frame.reset();
      reader.release();
      executed[ring].store(reader.position(), std::memory_order_release);
    }
  }
  bool canBeExecuted(const Frame& frame) {
    if (frame.method != api::Method::awaitRing) return true;
    auto await = bodyOf<Await>(frame);
    return executed[await.ring].load(std::memory_order_acquire) >= await.position;
  }
  bool isAtEnd() {
    for (unsigned ring = 0; ring < ringCount; ++ring)
      if (executed[ring].load() != segment.ring(ring).head.load()) return false;
    return true;
  }
};

}  // namespace

TEST_CASE("frames in several rings that await each other are all executed, none before those that it awaits, also across barriers") {
  constexpr uint64_t links = 6000;
  Rings rings;
  std::vector<std::thread> writing;
  std::atomic<unsigned> written{0};
  for (unsigned writer = 0; writer < writerCount; ++writer)
    writing.emplace_back([&, writer] {
      rings.write(writer, links);
      ++written;
    });
  // Now and then all consumers stop between two frames, and others continue from there.
  for (bool done = false; !done;) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> consuming;
    for (unsigned ring = 0; ring < ringCount; ++ring) consuming.emplace_back([&, ring] { rings.consume(ring, stop); });
    auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (!done && std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
      done = written == writerCount && rings.isAtEnd();
    }
    stop = true;
    for (auto& thread : consuming) thread.join();
  }
  for (auto& thread : writing) thread.join();
  CHECK(rings.broken == 0);
  for (uint64_t chain : rings.chains) CHECK(chain == links);
}

TEST_CASE("a ring that has never been used occupies no memory") {
  MemoryFile file = Segment::create();
  Segment segment{file};
  RingWriter first(segment, 0);
  std::atomic<bool> never{false};
  first.publish(*first.reserve(9, never), api::Method::nothing, 0);
  CHECK(segment.ring(1).head == 0);
  CHECK_FALSE(RingReader(segment, 0, 1).next());
}
