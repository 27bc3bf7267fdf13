#include "vgpu/wire/guest-file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/exception.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "../scratch-directory.h"
#include "vgpu/wire/guest-mailbox.h"
#include "vgpu/wire/ring.h"

using namespace vgpu;
using Side = GuestFile::Side;

namespace {

// The memory of a machine with one slot, and both sides' views of it.
struct Machine {
  Machine() {
    opened = GuestFile::make(path, GuestLayout::leastBytes);
    GuestFile(GuestFile::reopen(opened), Side::host).writeHeader(2, true);
  }
  GuestFile as(Side side) const { return GuestFile(GuestFile::reopen(opened), side); }

  test::ScratchDirectory scratch;
  const std::string path = scratch.path + "/memory";
  kj::AutoCloseFd opened;
};

std::string whyNot(const std::function<void()>& work) {
  std::string why;
  auto caught = kj::runCatchingExceptions([&] { work(); });
  KJ_IF_MAYBE (exception, caught) {
    why = exception->getDescription().cStr();
  }
  return why;
}

bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

std::vector<std::byte> someBytes(size_t count, unsigned seed) {
  std::vector<std::byte> bytes(count);
  for (auto& one : bytes) one = static_cast<std::byte>(seed = seed * 1103515245 + 12345);
  return bytes;
}

}  // namespace

TEST_CASE("the layout of a virtual machine's memory belongs to its version") {
  // A change here is another format: raise guestVersion, and redraw it in docs/virtual-machines.md.
  CHECK(guestVersion == 2);
  CHECK(sizeof(GuestHeader) == 56);
  CHECK(offsetof(GuestHeader, beats) == 48);
  CHECK(offsetof(GuestSlot, released) == 8);
  CHECK(offsetof(GuestSlot, served) == 64);
  CHECK(offsetof(GuestSlot, ended) == 72);
  CHECK(offsetof(GuestSlot, begun) == 80);
  CHECK(GuestLayout::slotBytes == 138 * MiB);
  CHECK(GuestLayout::slots(256 * MiB) == 1);
  CHECK(GuestLayout::slots(2 * GiB) == 14);
  CHECK(GuestLayout::slots(0) == 0);
  CHECK(GuestLayout::pieces(2 * GiB).place == 1 * GiB);
  CHECK(GuestLayout::pieces(2 * GiB).end() == 2 * GiB);
}

TEST_CASE("a file that cannot be a machine's memory is refused and left unchanged") {
  test::ScratchDirectory scratch;
  const std::string path = scratch.path + "/memory";
  CHECK(says(whyNot([&] { GuestFile::make(path, 300 * MiB); }), "a power of two"));
  unlink(path.c_str());
  CHECK(says(whyNot([&] { GuestFile::make(path, 128 * MiB); }), "at least 256 MiB"));
  unlink(path.c_str());
  GuestFile::make(path, 512 * MiB);
  CHECK(says(whyNot([&] { GuestFile::make(path, 256 * MiB); }), "has 536870912 bytes, not the 268435456"));
  CHECK_NOTHROW(GuestFile::make(path, 0));
  CHECK(says(whyNot([&] { GuestFile::make(scratch.path, 0); }), "cannot be opened"));
  REQUIRE(symlink(path.c_str(), (path + "-link").c_str()) == 0);
  CHECK(says(whyNot([&] { GuestFile::make(path + "-link", 0); }), "cannot be opened"));
}

TEST_CASE("a machine uses only memory that a vgpud of its version has initialized") {
  Machine machine;
  CHECK(machine.as(Side::guest).slots() == 1);
  auto host = machine.as(Side::host);
  auto guest = [&] { machine.as(Side::guest); };
  SUBCASE("no header") {
    host.header().magic = 0;
    CHECK(says(whyNot(guest), "vgpud has written no header to it"));
    CHECK_NOTHROW(GuestFile::make(machine.path, 0));
  }
  SUBCASE("another version") {
    host.header().version = 99;
    CHECK(says(whyNot(guest), "of version 99."));
    CHECK(says(whyNot([&] { GuestFile::make(machine.path, 0); }), "Remove the file"));
  }
  SUBCASE("another version of its segments") {
    host.header().segmentVersion = 98;
    CHECK(says(whyNot(guest), ".98, this vgpu of"));
  }
  SUBCASE("another size") {
    host.header().fileBytes = 1 * GiB;
    CHECK(says(whyNot(guest), "another size"));
  }
  host.writeHeader(1, false);
  CHECK_NOTHROW(guest());
}

TEST_CASE("each side holds a slot's lock as long as a process there has its memory") {
  Machine machine;
  auto host = machine.as(Side::host), guest = machine.as(Side::guest), again = machine.as(Side::host);
  auto locked = host.lock(0);
  REQUIRE(locked);
  CHECK_FALSE(again.lock(0));
  CHECK(again.isLocked(0));
  CHECK_FALSE(guest.isLocked(0));
  CHECK(guest.lock(0).has_value());
  Segment::prepare(adoptSegment(dup(*locked)));
  auto segment = std::make_unique<Segment>(adoptSegment(dup(*locked)));
  locked.reset();
  CHECK(again.isLocked(0));  // the mapping holds the lock
  segment.reset();
  CHECK(again.lock(0).has_value());
}

TEST_CASE("parts of the memory are locked by their holders, which can tell their own locks from others'") {
  Machine machine;
  kj::AutoCloseFd first = GuestFile::reopen(machine.opened), second = GuestFile::reopen(machine.opened);
  const GuestLocks one(first, Side::host), two(second, Side::host), guest(second, Side::guest);
  constexpr GuestLocks::Range all{0, 100 * MiB}, low{10 * MiB, 4 * MiB}, next{14 * MiB, 2 * MiB}, other{16 * MiB, 8 * MiB},
      high{30 * MiB, 2 * MiB};
  CHECK_FALSE(one.findAny(all));
  REQUIRE(one.tryLock(low));
  REQUIRE(one.tryLock(low));  // it already holds the lock
  REQUIRE(one.tryLock(high));
  REQUIRE(one.tryLock(next));
  REQUIRE(two.tryLock(other));
  CHECK(guest.tryLock(all));
  CHECK_FALSE(two.tryLock({12 * MiB, 2 * MiB}));
  CHECK_FALSE(two.tryLock(all));
  CHECK(one.findAny(low));
  CHECK_FALSE(one.findOthers(low));
  REQUIRE(two.findOthers(low));
  CHECK(two.findOthers(low)->place == 10 * MiB);
  CHECK(one.findOthers(all)->place == 16 * MiB);
  std::vector<uint64_t> places, sizes;
  for (auto& range : one.ours({11 * MiB, 20 * MiB})) places.push_back(range.place), sizes.push_back(range.bytes);
  CHECK(places == std::vector<uint64_t>{11 * MiB, 30 * MiB});  // adjacent locked parts are merged, and clipped to the range
  CHECK(sizes == std::vector<uint64_t>{5 * MiB, 1 * MiB});
  one.unlock(next);
  CHECK(two.tryLock(next));
  CHECK(two.ours(all).size() == 1);
  // Locked as long as it is mapped, also by a process that was passed the descriptor.
  kj::AutoCloseFd passed(dup(first));
  first = nullptr;
  CHECK_FALSE(two.tryLock(low));
  void* mapped = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, passed, 0);
  REQUIRE(mapped != MAP_FAILED);
  passed = nullptr;
  CHECK_FALSE(two.tryLock(high));
  munmap(mapped, 4096);
  CHECK(two.tryLock(low));
}

TEST_CASE("a session's pinned memory lies in no slot, and clearing or writing it touches only its own bytes") {
  test::ScratchDirectory scratch;
  kj::AutoCloseFd memory = GuestFile::make(scratch.path + "/memory", 512 * MiB);
  GuestFile(GuestFile::reopen(memory), Side::host).writeHeader(1, true);
  const GuestFile host(GuestFile::reopen(memory), Side::host), guest(GuestFile::reopen(memory), Side::guest);
  constexpr uint64_t last = 2;  // all of it is behind the file's first half
  REQUIRE(host.slots() == last + 1);
  REQUIRE(GuestLayout::slotAt(last) > GuestLayout::pieces(512 * MiB).place);
  constexpr GuestLocks::Range below{260 * MiB, 4 * MiB}, other{264 * MiB, 2 * MiB},
      behind{GuestLayout::slotAt(last) + GuestLayout::slotBytes, 2 * MiB};
  auto locked = host.lock(last), locking = guest.lock(last), stranger = host.lock(0);
  REQUIRE((locked && locking && stranger));
  const GuestLocks own(*locked, Side::host), others(*stranger, Side::host);
  CHECK_FALSE(others.tryLock({GuestLayout::slotAt(last), 2 * MiB}));
  REQUIRE((own.tryLock(below) && own.tryLock(behind) && others.tryLock(other)));
  CHECK_FALSE(host.lock(1));  // it ends behind `below`
  constexpr uint64_t slot = GuestLayout::slotAt(last);
  auto at = [](uint64_t place) { return static_cast<off_t>(place); };
  auto write = [&](uint64_t place) { REQUIRE(pwrite(memory, "word", 4, at(place)) == 4); };
  auto isZero = [&](uint64_t place) {
    char word[4];
    REQUIRE(pread(memory, word, 4, at(place)) == 4);
    return word[0] == 0;
  };
  for (uint64_t place : {below.place, behind.place, other.place, slot}) write(place);
  host.clearPieces(last, *locked);
  CHECK(isZero(below.place));
  CHECK(isZero(behind.place));
  CHECK_FALSE(isZero(other.place));
  CHECK_FALSE(isZero(slot));
  // Bytes that are written again have pages in the file afterwards.
  auto hasPages = [&](uint64_t place) { return lseek(memory, at(place), SEEK_DATA) == at(place); };
  REQUIRE(GuestLocks(*locking, Side::guest).tryLock(below));
  CHECK_FALSE(hasPages(below.end() - 4096));
  guest.rewrite(last, *locking);
  CHECK(hasPages(below.end() - 4096));
  CHECK_FALSE(hasPages(behind.place));
  CHECK_FALSE(isZero(slot));
  CHECK_FALSE(hasPages(other.end() - 4096));
}

TEST_CASE("a slot's segment is its piece of the file, and is polled") {
  Machine machine;
  auto host = machine.as(Side::host);
  auto locked = host.lock(0);
  MemoryFile piece = adoptSegment(dup(*locked));
  CHECK(piece.offset() == GuestLayout::slotAt(0) + GuestLayout::mailboxBytes);
  CHECK_THROWS_AS(Segment none(piece), kj::Exception);
  Segment::prepare(piece);
  Segment segment(piece), other(adoptSegment(dup(*locked)));
  CHECK(segment.waking() == Waking::polling);
  segment.ringAt(3, ringBytes - 1)[0] = std::byte{1};
  CHECK(other.ringAt(3, ringBytes - 1)[ringBytes] == std::byte{1});
  host.clear(0);
  CHECK(segment.header().magic == 0);
}

TEST_CASE("a piece beyond the file is refused") {
  Machine machine;
  auto piece = [&](off_t at) {
    int fd = GuestFile::reopen(machine.opened).release();
    lseek(fd, at, SEEK_SET);
    return whyNot([&] { MemoryFile::adoptPiece(fd, 64 * KiB); });
  };
  CHECK(piece(4096) == "");
  CHECK(says(piece(4097), "past the end of its file"));
  CHECK(says(piece(0), "past the end of its file"));
  CHECK(says(piece(static_cast<off_t>(256 * MiB - 4096)), "past the end of its file"));
  CHECK(says(piece(static_cast<off_t>(1 * TiB)), "past the end of its file"));
  int open = memfd_create("unsealed", MFD_ALLOW_SEALING);
  REQUIRE(ftruncate(open, static_cast<off_t>(SegmentLayout::bytes)) == 0);
  CHECK(says(whyNot([&] { adoptSegment(open); }), "sealed"));
}

TEST_CASE("a frame wakes a polling reader, and a full ring's writer continues when the ring is read") {
  Machine machine;
  auto host = machine.as(Side::host);
  auto locked = host.lock(0);
  Segment::prepare(adoptSegment(dup(*locked)));
  Segment worker(adoptSegment(dup(*locked))), program(adoptSegment(dup(*locked)));
  constexpr unsigned frames = 3 * ringBytes / frameUnit;
  std::thread writing([&] {
    RingWriter writer(program);
    const std::atomic<bool> never{false};
    for (unsigned i = 0; i < frames; ++i) writer.publish(*writer.reserve(1, never), api::Method::openRing, 0);
  });
  RingReader reader(worker, 0);
  unsigned read = 0;
  while (read < frames) {
    if (auto frame = reader.next()) {
      ++read;
      reader.release();
    } else {
      reader.sleep(reader.bell(), 1'000'000'000);
    }
  }
  writing.join();
  CHECK(reader.position() == uint64_t{frames} * frameUnit);
}

TEST_CASE("a polling sleep ends when the word changes, and at its timeout") {
  std::atomic<uint32_t> word{1};
  sleepOn(Waking::polling, word, 2, 1'000'000'000'000);
  sleepOn(Waking::polling, word, 1, 1'000'000);
  std::thread other([&] { word.store(2); });
  sleepOn(Waking::polling, word, 1, 1'000'000'000'000);
  other.join();
  CHECK(word.load() == 2);
}

TEST_CASE("a mailbox delivers bytes in order, however they are split") {
  Machine machine;
  auto host = machine.as(Side::host);
  auto locked = host.lock(0);
  GuestMailbox here(*locked, Side::host, 0), there(*locked, Side::guest, 0);
  const auto sent = someBytes(5 * GuestMailbox::ringBytes + 77, 1);
  std::vector<std::byte> got(sent.size()), back(10);
  std::mt19937 random(7);
  size_t written = 0, read = 0;
  while (read < sent.size()) {
    written += there.write(std::span(sent).subspan(written).first(std::min<size_t>(random() % 100'000, sent.size() - written)));
    read += here.read(std::span(got).subspan(read).first(std::min<size_t>(random() % 100'000, got.size() - read)));
  }
  CHECK(got == sent);
  CHECK(here.read(got) == 0);
  CHECK(there.read(back) == 0);
  CHECK(here.write(std::span(sent).first(10)) == 10);
  CHECK(there.read(back) == 10);
  CHECK(std::equal(back.begin(), back.end(), sent.begin()));
  CHECK(there.write(std::span(sent)) == GuestMailbox::ringBytes);
  CHECK(there.write(std::span(sent)) == 0);
}

TEST_CASE("a mailbox whose counters the other side has overwritten ends, and nothing outside of it is read or written") {
  Machine machine;
  auto host = machine.as(Side::host);
  auto locked = host.lock(0);
  GuestMailbox here(*locked, Side::host, 0), there(*locked, Side::guest, 0);
  std::vector<std::byte> room(100);
  REQUIRE(there.write(room) == 100);
  REQUIRE(here.read(room) == 100);
  auto scribble = [&](off_t at, uint64_t value) {
    const auto mailbox = static_cast<off_t>(GuestLayout::slotAt(0));
    REQUIRE(pwrite(machine.opened, &value, sizeof value, mailbox + at) == sizeof value);
  };
  constexpr off_t writtenToHost = 0, readFromHost = 128 + 64;  // offsets of counters in the two directions, which follow each other
  SUBCASE("further than the ring is large") { scribble(writtenToHost, 100 + GuestMailbox::ringBytes + 1); }
  SUBCASE("back") { scribble(writtenToHost, 99); }
  SUBCASE("around") { scribble(writtenToHost, UINT64_MAX); }
  SUBCASE("read what was not written") {
    scribble(readFromHost, 1);
    CHECK_THROWS_AS(here.write(room), kj::Exception);
    return;
  }
  CHECK_THROWS_AS(here.read(room), kj::Exception);
}

TEST_CASE("bytes written to a mailbox that has been restarted meanwhile are not read") {
  Machine machine;
  auto host = machine.as(Side::host);
  auto locked = host.lock(0);
  GuestMailbox old(*locked, Side::guest, 4), here(*locked, Side::host, 5), there(*locked, Side::guest, 5);
  std::vector<std::byte> bytes(100, std::byte{1}), room(100);
  here.clear();
  REQUIRE(old.write(bytes) == 100);
  CHECK(here.read(room) == 0);
  CHECK(there.write(std::span(bytes).first(8)) == 8);
  CHECK(here.read(room) == 8);
  GuestMailbox next(*locked, Side::host, 6);
  next.clear();
  CHECK(next.read(room) == 0);
}
