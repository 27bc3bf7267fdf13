#include "vgpu/base/memory-file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vgpu/wire/segment.h"

using namespace vgpu;

TEST_CASE("a holder of a memory file cannot resize it") {
  auto file = MemoryFile::create("test", 64 * KiB);
  CHECK(ftruncate(file.fd(), 0) != 0);
  CHECK(ftruncate(file.fd(), 1 * MiB) != 0);
}

TEST_CASE("adopt() takes only sealed memfds of an agreed size") {
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

TEST_CASE("pieces of a mapping can be kept when the rest is unmapped") {
  auto file = MemoryFile::create("test", 64 * KiB);
  Mapping mapping(file), other(file);
  std::byte* start = mapping.data();
  auto isMapped = [&](uint64_t offset) { return msync(start + offset, 4 * KiB, MS_ASYNC) == 0; };
  mapping.unmapAllBut({{8 * KiB, 4 * KiB}, {12 * KiB, 4 * KiB}, {60 * KiB, 4 * KiB}});
  CHECK(mapping.data() == nullptr);
  for (uint64_t offset = 0; offset < 64 * KiB; offset += 4 * KiB)
    CHECK(isMapped(offset) == (offset == 8 * KiB || offset == 12 * KiB || offset == 60 * KiB));
  start[60 * KiB] = std::byte{42};
  CHECK(other.data()[60 * KiB] == std::byte{42});
  for (uint64_t offset : {8 * KiB, 12 * KiB, 60 * KiB}) munmap(start + offset, 4 * KiB);
}

TEST_CASE("a file that is not a segment is refused") {
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
