#include "stub/worker/reply.h"

#include <kj/debug.h>

namespace vgpu::stub {

std::span<const capnp::word> Reply::words() {
  KJ_REQUIRE(message.size() * sizeof(capnp::word) <= maxReplyBytes, "a reply is too large", message.size());
  return message;
}

void Reply::reset() {
  message.clear();
  byGpu = false;
}

}  // namespace vgpu::stub
