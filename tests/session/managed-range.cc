#include "intercept/session/managed/managed-range.h"

#include <doctest/doctest.h>

#include "vgpu/base/sizes.h"

namespace vgpu::client {
namespace {

constexpr uint64_t pieceBytes = 64 * KiB, rangeBytes = 4 * MiB;

// A range of managed memory, and what a touch of it fetches.
struct Touched {
  static constexpr uint64_t begin = 0x300000000000;  // an address range that nothing else uses
  ManagedRange range{std::move(HostPages::at(begin, rangeBytes).value()), {begin, rangeBytes}, 0};

  // Start and length of the run that the touch fetches.
  std::pair<uint64_t, uint64_t> touch(uint64_t at, HostAccess access = HostAccess::read) {
    auto run = range.touched(begin + at);
    ByteSpan span = range.spanOf(run);
    CHECK(range.allow(run, access));
    CHECK(range.accessAt(begin + at) == access);
    return {span.address - begin, span.bytes};
  }
  // What the program may access: start, length, and whether it may write.
  std::vector<std::tuple<uint64_t, uint64_t, bool>> has() {
    std::vector<std::tuple<uint64_t, uint64_t, bool>> found;
    range.forAccessible([&](const ManagedRange::Run& run) {
      found.emplace_back(range.spanOf(run).address - begin, range.spanOf(run).bytes, run.access == HostAccess::write);
    });
    return found;
  }
};

using Span = std::pair<uint64_t, uint64_t>;

}  // namespace

TEST_CASE("one touch fetches its page, a second one the missing pages of the 64 KiB around it, and a sequential one twice as much") {
  Touched of;
  CHECK(of.touch(5 * hostPageBytes + 7) == Span{5 * hostPageBytes, hostPageBytes});
  CHECK(of.touch(2 * pieceBytes + 3 * hostPageBytes) == Span{2 * pieceBytes, pieceBytes});
  CHECK(of.touch(3 * pieceBytes) == Span{3 * pieceBytes, 2 * pieceBytes});
  CHECK(of.touch(5 * pieceBytes) == Span{5 * pieceBytes, 4 * pieceBytes});
  CHECK(of.touch(0) == Span{0, 5 * hostPageBytes});
  CHECK(of.touch(8 * hostPageBytes) == Span{6 * hostPageBytes, pieceBytes - 6 * hostPageBytes});
}

TEST_CASE("after a period with one touch the next fetches a page, with more touches 64 KiB; a write after a read does not count") {
  Touched of;
  for (int i = 0; i < 3; ++i) {
    CHECK(of.touch(pieceBytes).second == hostPageBytes);
    CHECK(of.touch(pieceBytes, HostAccess::write).second == hostPageBytes);
    of.range.takeAll();
  }
  CHECK(of.touch(pieceBytes).second == hostPageBytes);
  CHECK(of.touch(9 * pieceBytes).second == pieceBytes);
  of.range.takeAll();
  CHECK(of.touch(pieceBytes).second == pieceBytes);
  of.range.takeAll();
  CHECK(of.touch(pieceBytes).second == hostPageBytes);
}

TEST_CASE("a program that is expected to go through memory gets up to 16 MiB at a time") {
  Touched of;
  of.range.expect(Touched::begin + pieceBytes);
  CHECK(of.touch(pieceBytes) == Span{pieceBytes, rangeBytes - pieceBytes});
}

TEST_CASE("accessible memory is one run for each kind of access, in order, and empty once all is taken away") {
  Touched of;
  CHECK(!of.range.isOpen());
  of.touch(3 * pieceBytes);
  of.touch(3 * pieceBytes + hostPageBytes, HostAccess::write);
  of.touch(hostPageBytes, HostAccess::write);
  of.touch(3 * pieceBytes, HostAccess::write);
  CHECK(of.has() == std::vector<std::tuple<uint64_t, uint64_t, bool>>{{0, pieceBytes, true}, {3 * pieceBytes, 17 * hostPageBytes, true}});
  of.touch(pieceBytes);
  CHECK(of.has() == std::vector<std::tuple<uint64_t, uint64_t, bool>>{
                        {0, pieceBytes, true}, {pieceBytes, pieceBytes, false}, {3 * pieceBytes, 17 * hostPageBytes, true}});
  of.range.takeAll();
  CHECK(!of.range.isOpen());
  CHECK(of.has().empty());
  CHECK(of.range.accessAt(Touched::begin + hostPageBytes) == HostAccess::none);
}

}  // namespace vgpu::client
