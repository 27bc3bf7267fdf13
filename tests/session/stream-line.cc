#include "intercept/session/stream-line.h"

#include <doctest/doctest.h>

#include "vgpu/wire/segment.h"

namespace vgpu::client {

TEST_CASE("a stream has one line from its first use on") {
  Segment segment(Segment::create());
  EventLines lines(segment);
  StreamLine one, other;
  CHECK(!one.find());
  auto line = one.take(lines);
  REQUIRE(line);
  CHECK(one.take(lines) == line);
  CHECK(one.find() == line);
  CHECK(other.take(lines) != line);
}

TEST_CASE("the line of a stream that is gone is another's only when the GPU has written all that was asked of it") {
  Segment segment(Segment::create());
  EventLines lines(segment);
  StreamLine gone, next, last;
  auto line = gone.take(lines);
  gone.expect(65);
  gone.expect(129);
  gone.expect(1);  // two threads record at once
  gone.end(lines, 0);
  segment.eventLine(*line).done.store(65);
  CHECK(next.take(lines) != line);
  segment.eventLine(*line).done.store(129);
  CHECK(last.take(lines) == line);
}

}  // namespace vgpu::client
