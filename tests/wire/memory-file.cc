#include "vgpu/base/memory-file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vgpu/wire/segment.h"

using namespace vgpu;

TEST_CASE("a memory file cannot be resized by whoever holds it") {
  auto file = MemoryFile::create("test", 64 * KiB);
  CHECK(ftruncate(file.fd(), 0) != 0);
  CHECK(ftruncate(file.fd(), 1 * MiB) != 0);
}

TEST_CASE("adopting takes only sealed memfds of an agreed size") {
  int open = memfd_create("open", MFD_ALLOW_SEALING);
  REQUIRE(ftruncate(open, 64 * KiB) == 0);
  CHECK_THROWS_AS(MemoryFile::adopt(open, 0, 1 * MiB), kj::Exception);
  auto file = MemoryFile::create("test", 64 * KiB);
  CHECK_THROWS_AS(MemoryFile::adopt(dup(file.fd()), 1 * MiB, 2 * MiB), kj::Exception);
  CHECK(MemoryFile::adopt(dup(file.fd()), 0, 1 * MiB).bytes() == 64 * KiB);
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  CHECK_THROWS_AS(MemoryFile::adopt(pipes[0], 0, 1 * MiB), kj::Exception);
  close(pipes[1]);
}

TEST_CASE("two mappings of one file show the same bytes") {
  auto file = MemoryFile::create("test", 64 * KiB);
  Mapping one(file), other(file);
  one.data()[100] = std::byte{42};
  CHECK(other.data()[100] == std::byte{42});
}

TEST_CASE("a segment that is none is refused") {
  auto file = MemoryFile::create("zeros", SegmentLayout::bytes);
  CHECK_THROWS_AS(Segment segment(file), kj::Exception);
  auto small = MemoryFile::create("small", 64 * KiB);
  CHECK_THROWS_AS(Segment segment(small), kj::Exception);
}

TEST_CASE("the ring is mapped twice in a row") {
  auto file = Segment::create();
  Segment segment(file);
  segment.ringAt(0, 0)[ringBytes] = std::byte{7};
  CHECK(segment.ringAt(0, 0)[0] == std::byte{7});
}
