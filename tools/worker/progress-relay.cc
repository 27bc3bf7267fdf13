#include "tools/worker/progress-relay.h"

#include <kj/debug.h>

#include "tools/common/cross-thread.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

// A receiver that fails or is slow gets fewer reports; the work does not wait for it.
struct ProgressRelay::Receiver {
  kj::Maybe<control::Progress::Client> client;
  kj::Promise<void> sending = kj::READY_NOW;
  bool busy = false;

  void send(const char* phase, uint64_t doneBytes, uint64_t totalBytes) {
    if (busy) return;
    KJ_IF_MAYBE (receiver, client) {
      auto request = receiver->reportRequest();
      request.setPhase(phase);
      request.setDoneBytes(doneBytes);
      request.setTotalBytes(totalBytes);
      busy = true;
      sending = request.send().then([this] { busy = false; }, [](kj::Exception&&) {}).eagerlyEvaluate(nullptr);
    }
  }
};

ProgressRelay::ProgressRelay(control::Progress::Client client)
    : receiver(std::make_shared<Receiver>()), loop(kj::getCurrentThreadExecutor().addRef()) {
  receiver->client = kj::mv(client);
}

void ProgressRelay::report(const char* phase, uint64_t doneBytes, uint64_t totalBytes) {
  if (cancelled) fail("cancelled by the caller");
  callOn(*loop, [&] {
    if (!cancelled) receiver->send(phase, doneBytes, totalBytes);
  });
}

void ProgressRelay::cancel() {
  cancelled = true;
  receiver->client = nullptr;
  receiver->sending = kj::READY_NOW;
}

}  // namespace vgpu::stub
