#include "stub/worker/reply.h"

#include <capnp/any.h>
#include <kj/debug.h>

namespace vgpu::stub {

std::span<const capnp::word> Reply::words() {
  if (!message) return {};
  auto segments = message->getSegmentsForOutput();
  if (segments.size() == 1) return {segments[0].begin(), segments[0].size()};
  auto root = message->getRoot<capnp::AnyPointer>().asReader();
  uint64_t words = root.targetSize().wordCount + 1;
  KJ_REQUIRE(words * sizeof(capnp::word) <= maxReplyBytes, "a reply larger than any should be", words);
  capnp::MallocMessageBuilder whole(static_cast<unsigned>(words), capnp::AllocationStrategy::FIXED_SIZE);
  whole.setRoot(root);
  auto one = whole.getSegmentsForOutput();
  KJ_REQUIRE(one.size() == 1);
  joined = kj::heapArray(one[0]);
  return {joined.begin(), joined.size()};
}

void Reply::reset() {
  if (message) {
    message.reset();
    scratch.fill({});
    joined = nullptr;
  }
  byGpu = false;
}

}  // namespace vgpu::stub
