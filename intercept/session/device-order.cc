#include "intercept/session/device-order.h"

#include "intercept/session/in-context.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

namespace {

constexpr uint64_t nullStream = 0;

}  // namespace

CUresult waitForDevices(Thread& thread, uint32_t others) {
  return forDevices(thread.session, others, [&](unsigned other) {
    StreamFence fence;
    const CUresult error = [&] {
      InContext there(thread, thread.session.primaryContext(other));
      return fenceStream(thread, nullStream, fence);
    }();
    return error != CUDA_SUCCESS ? error : awaitFence(thread, nullStream, fence);
  });
}

CUresult letDevicesWait(Thread& thread, uint32_t others) {
  StreamFence fence;
  if (CUresult error = fenceStream(thread, nullStream, fence)) return error;
  return forDevices(thread.session, others, [&](unsigned other) {
    InContext there(thread, thread.session.primaryContext(other));
    return awaitFence(thread, nullStream, fence);
  });
}

}  // namespace vgpu::client
