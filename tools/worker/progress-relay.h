// Passes progress from the work thread to the caller, and a cancellation in the other direction.
//
// Made in the event loop, called by the work thread, kept alive by both.
#pragma once

#include <kj/async.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "vgpu/control/control.capnp.h"

namespace vgpu::stub {

class ProgressRelay {
 public:
  explicit ProgressRelay(control::Progress::Client receiver);

  // On the work thread. Throws kj::Exception if the caller has given up: the work then ends as at any error.
  void report(const char* phase, uint64_t doneBytes, uint64_t totalBytes);

  // In the event loop: nobody waits for the result any more.
  void cancel();

 private:
  struct Receiver;

  std::shared_ptr<Receiver> receiver;  // used in the event loop only
  kj::Own<const kj::Executor> loop;
  std::atomic<bool> cancelled{false};
};

// `work`, tied to `relay`: dropping the promise cancels the work.
template <typename T>
kj::Promise<T> cancelOnDrop(kj::Promise<T> work, std::shared_ptr<ProgressRelay> relay) {
  return work.attach(kj::defer([relay = kj::mv(relay)] { relay->cancel(); }));
}

}  // namespace vgpu::stub
