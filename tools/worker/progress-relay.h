// Carries progress from the working thread to the caller, and a cancellation the other way.
//
// Made in the event loop, called by the working thread, kept alive by both.
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

  // On the working thread. Throws kj::Exception when the caller has given up: the work ends as it would on any error.
  void report(const char* phase, uint64_t doneBytes, uint64_t totalBytes);

  // In the event loop: nobody waits for the result any more.
  void cancel();

 private:
  struct Receiver;

  std::shared_ptr<Receiver> receiver;  // touched in the event loop only
  kj::Own<const kj::Executor> loop;
  std::atomic<bool> cancelled{false};
};

// `work` with its end tied to `relay`: dropping the promise cancels.
template <typename T>
kj::Promise<T> cancelOnDrop(kj::Promise<T> work, std::shared_ptr<ProgressRelay> relay) {
  return work.attach(kj::defer([relay = kj::mv(relay)] { relay->cancel(); }));
}

}  // namespace vgpu::stub
