// Asks the daemon, on behalf of a GPU's thread, to free GPU memory that a suspended session still occupies (interface SpareMemory). Made in
// the event loop, which it must not outlive.
#pragma once

#include <kj/async.h>

#include "tools/common/cross-thread.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::stub {

class SpareRelay {
 public:
  explicit SpareRelay(control::SpareMemory::Client client)
      : client(kj::mv(client)), loop(kj::getCurrentThreadExecutor().addRef()) {}

  // On any thread except the loop's; blocks. Returns false if there is no such memory, or no daemon.
  bool free() {
    bool freed = false;
    auto failure = kj::runCatchingExceptions([&] {
      freed = callOn(*loop, [&] {
        return client.freeRequest().send().then(
            [](capnp::Response<control::SpareMemory::FreeResults>&& results) { return results.getFreed(); });
      });
    });
    return failure == nullptr && freed;
  }

 private:
  control::SpareMemory::Client client;  // used in the event loop only
  kj::Own<const kj::Executor> loop;
};

}  // namespace vgpu::stub
