#include "intercept/session/device-output.h"

#include <cstdio>
#include <string>

#include "intercept/session/call.h"
#include "intercept/session/cancellation.h"

namespace vgpu::client {

namespace {

// The next part of what kernels of `device` have printed; false where there is no more behind it. The gate is left
// when this returns: nobody is to be kept from suspending by a pipe that nobody reads.
bool take(Thread& thread, unsigned device, std::string& text) {
  text.clear();
  Call<api::Cuda::OutputTakeParams> frame(thread, api::Method::outputTake);
  frame.onDevice(device);
  if (frame.call() != CUDA_SUCCESS) return false;
  auto results = frame.results<api::Cuda::OutputTakeResults>();
  text.assign(results.getText().asChars().begin(), results.getText().size());
  return results.getMore();
}

}  // namespace

// Whoever has waited for work finds its text written when it returns, also where another thread has taken it.
void DeviceOutput::deliver(Thread& thread, unsigned device) {
  Session& session = thread.session;
  auto& progress = session.progress[device];
  CancellationOff untilWritten;  // what has been taken is nowhere else
  std::lock_guard lock(mutex);
  bool waits = session.segment.header().outputWaits.load(std::memory_order_acquire) != 0;
  uint64_t last = progress.lastWork.load(std::memory_order_relaxed);
  bool wasIdle = progress.isIdle();
  if (!waits && taken[device].load(std::memory_order_relaxed) >= last) return;
  std::string text;
  for (bool more = true; more;) {
    more = take(thread, device, text);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  if (wasIdle) raise(taken[device], last);
}

void DeviceOutput::deliverWaiting(Thread& thread) {
  if (thread.session.segment.header().outputWaits.load(std::memory_order_acquire) != 0) deliver(thread, thread.device());
}

}  // namespace vgpu::client
