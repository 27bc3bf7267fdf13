#include "intercept/session/stream-completion.h"

#include <doctest/doctest.h>

#include "vgpu/wire/segment.h"

namespace vgpu::client {

TEST_CASE("a stream keeps one completion word from its first use on") {
  Segment segment(Segment::create());
  CompletionWords completions(segment);
  StreamCompletion one, other;
  CHECK(!one.find());
  auto completion = one.take(completions, 0);
  REQUIRE(completion);
  CHECK(one.take(completions, 0) == completion);
  CHECK(one.find() == completion);
  CHECK(other.take(completions, 0) != completion);
}

TEST_CASE("the completion word of a destroyed stream is reused only after the GPU has written everything that was requested") {
  Segment segment(Segment::create());
  CompletionWords completions(segment);
  StreamCompletion gone, next, last;
  auto completion = gone.take(completions, 0);
  gone.expect(&gone, 65);
  gone.expect(&gone, 129);
  gone.expect(&gone, 1);  // two threads record at once
  gone.end(completions, 0);
  segment.completionWord(*completion).done.store(65);
  CHECK(next.take(completions, 0) != completion);
  segment.completionWord(*completion).done.store(129);
  CHECK(last.take(completions, 0) == completion);
}

}  // namespace vgpu::client
