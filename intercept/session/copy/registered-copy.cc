#include "intercept/session/copy/registered-copy.h"

#include <algorithm>
#include <cstring>

#include "intercept/session/copy/frame.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

namespace {

// Host functions of all devices: another device's stream may be ordered behind one of them.
bool isAnyFunctionPending(Session& session) {
  return std::ranges::any_of(session.hostFunctions, [](auto& functions) { return functions.isAnyPending(); });
}

CUresult postTaking(Thread& thread, const CopyEnd& source, const BoxSize& size, uint64_t packed, uint64_t stream) {
  return HostFunctions::post(thread, thread.session.registeredReads, stream, [=](CUresult) {
    forRuns(source, size, [&](const std::byte* memory, uint64_t offset, uint64_t bytes) {
      std::memcpy(fromWire<std::byte*>(packed) + offset, memory, bytes);
    });
  });
}

}  // namespace

std::optional<CUresult> copyBehindFunctions(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size,
                                            uint64_t stream) {
  Memory& memory = thread.session.memory;
  uint64_t packed = 0;
  if (!isAnyFunctionPending(thread.session) || !memory.mayShareHost()) return std::nullopt;
  if (memory.allocateHost(thread, size.bytes(), 0, HostKind::staging, thread.owner(), packed) != CUDA_SUCCESS) return std::nullopt;
  if (!memory.isShared(packed) || postTaking(thread, source, size, packed, stream) != CUDA_SUCCESS) {
    memory.freeHost(thread, packed);
    return std::nullopt;
  }
  const CopyEnd from = CopyEnd::memory(packed, size.width, size.width * size.height);
  const CUresult result = withCopy(thread, destination, from, size, stream, nullptr, [](auto& frame) { return frame.post(); });
  StreamFence fence;
  if (fenceStream(thread, stream, fence) == CUDA_SUCCESS) {
    memory.freeBehind(thread, packed, fence);
  } else {
    synchronizeStream(thread, stream);
    memory.freeHost(thread, packed);
  }
  return result;
}

}  // namespace vgpu::client
