#include "tools/vgpud/client-stream.h"

#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

// Reads per turn of the event loop; a message takes two or three.
constexpr unsigned readsInTurn = 48;

}  // namespace

kj::Promise<size_t> ClientStream::tryRead(void* buffer, size_t minBytes, size_t maxBytes) {
  std::string problem = excess();
  if (!problem.empty()) fail(problem);
  if (++reads % readsInTurn != 0) return inner->tryRead(buffer, minBytes, maxBytes);
  return timer.afterDelay(0 * kj::SECONDS).then([this, buffer, minBytes, maxBytes] {
    return inner->tryRead(buffer, minBytes, maxBytes);
  });
}

}  // namespace vgpu::daemon
