#include "stub/worker/answer.h"

#include <kj/debug.h>

#include "vgpu/wire/segment.h"

namespace vgpu::stub {

std::span<const capnp::word> Answer::words() {
  if (!message) return {};
  auto segments = message->getSegmentsForOutput();
  KJ_REQUIRE(segments.size() == 1 && segments[0].size() * sizeof(capnp::word) <= answerBytes,
             "an answer larger than a slot");
  return {segments[0].begin(), segments[0].size()};
}

void Answer::reset() {
  if (message) {
    message.reset();
    scratch.fill({});
  }
  byGpu = false;
  postponed.reset();
}

}  // namespace vgpu::stub
