#include "intercept/session/device-output.h"

#include <cstdio>
#include <string>

#include "intercept/session/call.h"
#include "intercept/session/cancellation.h"

namespace vgpu::client {

namespace {

// Takes the next part of the text that kernels of `device` have printed; false if it was the last. Leaves the gate before it returns, so
// that writing to a blocked pipe delays no suspend.
bool take(Thread& thread, unsigned device, std::string& text) {
  text.clear();
  Call<api::Cuda::OutputTakeParams> frame(thread.on(device), api::Method::outputTake);
  if (frame.call() != CUDA_SUCCESS) return false;
  auto results = frame.results<api::Cuda::OutputTakeResults>();
  text.assign(results.getText().asChars().begin(), results.getText().size());
  return results.getMore();
}

}  // namespace

// When a wait returns, the text of its work has been written, even if another thread has taken it (`mutex`).
void DeviceOutput::deliver(Thread& thread, unsigned device) {
  Session& session = thread.session;
  auto& progress = session.progress[device];
  CancellationOff untilWritten;  // taken text exists nowhere else
  std::lock_guard lock(mutex);
  bool waits = session.segment.header().outputWaits.load(std::memory_order_acquire) != 0;
  uint64_t last = progress.lastWork.get();
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
