// The ring with one writer, with many writers, and with a hostile program.
#include "vgpu/wire/ring.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

using namespace vgpu;

namespace {

struct Pair {
  MemoryFile file = Segment::create();
#if defined(__SANITIZE_THREAD__)
  Segment writerSide{file};
  Segment& readerSide = writerSide;  // thread sanitizer does not know that two mappings are the same memory
#else
  Segment writerSide{file}, readerSide{file};  // two mappings, as in two processes
#endif
  RingWriter writer{writerSide};
  RingReader reader{readerSide, 0};
  std::atomic<bool> abandoned{false};

  void post(uint64_t words, uint64_t first, uint16_t slot = 0) {
    auto place = writer.reserve(words, abandoned);
    REQUIRE(place);
    std::memcpy(place->body(), &first, sizeof first);
    writer.publish(*place, api::Method::fill, slot);
  }
  uint64_t firstWord(const Frame& frame) {
    uint64_t word;
    std::memcpy(&word, frame.words.begin(), sizeof word);
    return word;
  }
};

}  // namespace

TEST_CASE("an empty ring has no frame") {
  Pair pair;
  CHECK(!pair.reader.next());
}

TEST_CASE("a frame is read back with its position, slot and method") {
  Pair pair;
  pair.post(3, 0xabcdef, 7);
  auto frame = pair.reader.next();
  REQUIRE(frame);
  CHECK(frame->position == 0);
  CHECK(frame->slot == 7);
  CHECK(frame->method == api::Method::fill);
  CHECK(pair.firstWord(*frame) == 0xabcdef);
}

TEST_CASE("a frame that was not released is read again") {
  Pair pair;
  pair.post(1, 1);
  CHECK(pair.reader.next()->position == 0);
  CHECK(pair.reader.next()->position == 0);
  pair.reader.release();
  CHECK(!pair.reader.next());
}

TEST_CASE("frames can be read ahead, and are read again until they are released") {
  Pair pair;
  for (uint64_t i = 1; i <= 3; ++i) pair.post(10, i);
  auto first = pair.reader.next();
  auto second = pair.reader.after(*first), third = pair.reader.after(*second);
  REQUIRE(third);
  CHECK(pair.firstWord(*first) == 1);
  CHECK(pair.firstWord(*second) == 2);
  CHECK(pair.firstWord(*third) == 3);
  CHECK(!pair.reader.after(*third));
  CHECK(!pair.reader.methodAfter(*third));
  CHECK(pair.reader.methodAfter(*first) == static_cast<uint16_t>(api::Method::fill));
  CHECK(pair.firstWord(*pair.reader.next()) == 1);
  pair.reader.release(third->position);
  CHECK(pair.reader.position() == third->position);
  CHECK(pair.firstWord(*pair.reader.next()) == 3);
  for (uint64_t i = 0; i < third->position; ++i) REQUIRE(pair.readerSide.ringAt(0, i)[0] == std::byte{0});
}

TEST_CASE("reading ahead ends when there is no room for copies of more frames") {
  Pair pair;
  for (uint64_t i = 0; i < 10; ++i) pair.post(maxMessageWords, i);
  unsigned read = 0;
  for (auto frame = pair.reader.next(); frame; frame = pair.reader.after(*frame)) CHECK(pair.firstWord(*frame) == read++);
  CHECK(read == 5);
  pair.reader.release();
  CHECK(pair.firstWord(*pair.reader.next()) == 1);
}

TEST_CASE("a frame that is read ahead is validated like any other") {
  Pair pair;
  pair.post(1, 1);
  pair.post(1, 2);
  auto first = pair.reader.next();
  auto* header = static_cast<FrameHeader*>(static_cast<void*>(pair.writerSide.ringAt(0, first->bytes)));
  header->method = api::methodCount;
  CHECK_THROWS_AS(pair.reader.after(*first), kj::Exception);
}

TEST_CASE("released memory is zero, so an old frame's bytes cannot be taken for a sequence number") {
  Pair pair;
  pair.post(100, ~0ull);
  pair.reader.next();
  pair.reader.release();
  for (uint64_t i = 0; i < frameBytes(100); ++i) REQUIRE(pair.readerSide.ringAt(0, i)[0] == std::byte{0});
}

TEST_CASE("frames of every size go round the ring many times, in order") {
  Pair pair;
  std::mt19937 random(1);
  uint64_t sent = 0, received = 0;
  while (received < 20'000) {
    if (sent - received < 50 && sent < 20'000) pair.post(1 + random() % (maxMessageWords / 64), sent++);
    else {
      auto frame = pair.reader.next();
      REQUIRE(frame);
      REQUIRE(pair.firstWord(*frame) == received++);
      pair.reader.release();
    }
  }
}

TEST_CASE("with many writers no frame is lost, and each writer's frames keep their order") {
  Pair pair;
  constexpr int writers = 6;
  constexpr uint64_t each = 4'000;
  std::vector<std::thread> threads;
  for (uint16_t w = 0; w < writers; ++w)
    threads.emplace_back([&, w] {
      for (uint64_t i = 0; i < each; ++i) {
        auto place = pair.writer.reserve(1 + i % 40, pair.abandoned);
        uint64_t value = uint64_t{w} << 32 | i;
        std::memcpy(place->body(), &value, sizeof value);
        pair.writer.publish(*place, api::Method::fill, w);
      }
    });
  std::vector<uint64_t> next(writers, 0);
  for (uint64_t received = 0; received < writers * each;) {
    auto frame = pair.reader.next();
    if (!frame) {
      pair.reader.sleep(pair.reader.bell(), 1'000'000);
      continue;
    }
    uint64_t value = pair.firstWord(*frame);
    REQUIRE(frame->slot == value >> 32);
    REQUIRE(next[frame->slot]++ == (value & 0xffffffff));
    pair.reader.release();
    ++received;
  }
  for (auto& thread : threads) thread.join();
}

// A lost wake-up would make this test hang.
TEST_CASE("a consumer that goes to sleep is woken by the next frame, however soon it arrives") {
  Pair pair;
  constexpr uint64_t frames = 20'000, longTime = 3'600'000'000'000;
  std::atomic<uint64_t> consumed{0};
  std::thread writer([&] {
    for (uint64_t i = 0; i < frames; ++i) {
      while (consumed.load() < i) std::this_thread::yield();
      for (uint64_t wait = i % 64; wait > 0; --wait) __builtin_ia32_pause();
      pair.post(1, i);
    }
  });
  while (consumed.load() < frames) {
    auto frame = pair.reader.next();
    if (!frame) {
      pair.reader.sleep(pair.reader.bell(), longTime);
      continue;
    }
    REQUIRE(pair.firstWord(*frame) == consumed.load());
    pair.reader.release();
    consumed.fetch_add(1);
  }
  writer.join();
}

TEST_CASE("a sleeping consumer can be woken without a frame, and an awake one is left alone") {
  Pair pair;
  const uint32_t bell = pair.reader.bell();
  pair.writer.wakeConsumer();
  CHECK(pair.reader.bell() == bell);
  std::atomic<bool> isUp{false};
  std::thread waker([&] {
    while (!isUp.load()) pair.writer.wakeConsumer();
  });
  while (pair.reader.bell() == bell) pair.reader.sleep(bell, 3'600'000'000'000);  // sleeps for ever if there is no wake-up
  isUp = true;
  waker.join();
  CHECK(pair.reader.bell() == bell + 1);
  CHECK(!pair.reader.next());
}

TEST_CASE("a consumer that was woken since it read the bell does not sleep") {
  Pair pair;
  uint32_t bell = pair.reader.bell();
  pair.reader.wake();
  pair.reader.sleep(bell, 3'600'000'000'000);
  pair.reader.awaitBell(bell, 3'600'000'000'000);
}

TEST_CASE("a consumer sleeps only briefly while a frame is being written") {
  Pair pair;
  auto place = pair.writer.reserve(1, pair.abandoned);
  REQUIRE(place);
  pair.reader.sleep(pair.reader.bell(), 3'600'000'000'000);  // no wake-up comes
  CHECK(!pair.reader.next());
  pair.writer.publish(*place, api::Method::fill, 0);
  CHECK(pair.reader.next());
}

TEST_CASE("a full ring blocks its writer until there is room") {
  Pair pair;
  uint64_t count = 0;
  std::atomic<uint64_t> posted{0};
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) {
      pair.post(maxMessageWords, static_cast<uint64_t>(i));
      posted.fetch_add(1);
    }
  });
  while (posted.load() < ringBytes / maxFrameBytes) std::this_thread::yield();
  while (count < 300) {
    auto frame = pair.reader.next();
    if (!frame) {
      pair.reader.sleep(pair.reader.bell(), 1'000'000);
      continue;
    }
    CHECK(pair.firstWord(*frame) == count++);
    pair.reader.release();
  }
  writer.join();
}

TEST_CASE("a writer that waits for room gives up when the session is lost") {
  Pair pair;
  std::atomic<bool> gaveUp{false};
  std::thread writer([&] {
    while (pair.writer.reserve(maxMessageWords, pair.abandoned)) {
    }
    gaveUp = true;
  });
  while (pair.writerSide.ring(0).head.load() <= ringBytes) std::this_thread::yield();
  CHECK(!gaveUp);
  pair.abandoned = true;
  writer.join();
  CHECK(gaveUp);
}

TEST_CASE("a reader that begins at a barrier continues from there") {
  Pair pair;
  pair.post(1, 1);
  pair.reader.next();
  pair.reader.release();
  pair.post(1, 2);
  RingReader another(pair.readerSide, pair.reader.position());
  auto frame = another.next();
  REQUIRE(frame);
  CHECK(pair.firstWord(*frame) == 2);
}

TEST_CASE("a frame that no honest program writes is refused") {
  Pair pair;
  auto place = pair.writer.reserve(1, pair.abandoned);
  auto corrupt = [&](size_t offset, auto value) {
    pair.writer.publish(*place, api::Method::fill, 0);
    std::memcpy(place->frame + offset, &value, sizeof value);
    CHECK_THROWS_AS(pair.reader.next(), kj::Exception);
  };
  SUBCASE("another position's stamp") { corrupt(0, uint64_t{99}); }
  SUBCASE("no size") { corrupt(offsetof(FrameHeader, bytes), uint32_t{0}); }
  SUBCASE("a size that is no multiple of the unit") { corrupt(offsetof(FrameHeader, bytes), uint32_t{65}); }
  SUBCASE("a size beyond every frame") { corrupt(offsetof(FrameHeader, bytes), uint32_t{1} << 30); }
  SUBCASE("an unknown method") { corrupt(offsetof(FrameHeader, method), uint16_t{60'000}); }
  SUBCASE("a slot that is none") { corrupt(offsetof(FrameHeader, slot), uint16_t{slotCount}); }
  SUBCASE("a device that is none") { corrupt(offsetof(FrameHeader, device), uint8_t{200}); }
}
