// A vgpu-worker: the process, and the connection for calls to it.
//
// The object owns the process: destroying the object kills the process at once, whatever it does, because a worker has nothing that must be
// kept. `Processes` reaps it.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <string>
#include <vector>

#include "tools/common/worker-counters.h"
#include "tools/vgpud/processes.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/memory-file.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

// The device that workers serve, in the syntax of `vgpu-worker --device`, and their environment for it.
struct WorkerKind {
  std::string device;                    // "cuda", "emulated:/…/libvgpu-emulator.so"
  std::string label;                     // "cuda", "emulated"
  std::vector<std::string> environment;  // NAME=VALUE, in addition to every worker's environment
  std::vector<std::string> arguments;    // additional arguments of vgpu-worker
  int pinnedMemory = -1;                 // a descriptor of the daemon, not owned
  // Starting a driver takes 0.2 to 0.4 s (docs/facts.md); on a machine with many GPUs several seconds.
  kj::Duration startLimit = 60 * kj::SECONDS;
};

class WorkerProcess {
 public:
  // Throws kj::Exception if the process cannot be started.
  WorkerProcess(kj::AsyncIoContext& io, Processes& processes, const WorkerKind& kind);
  ~WorkerProcess() noexcept(false);
  KJ_DISALLOW_COPY(WorkerProcess);

  pid_t pid() const { return process; }
  control::Worker::Client& remote() { return client; }
  // The worker's own counters, read from shared memory without a call.
  const WorkerCounters& counted() const;

  // Resolves to how the process ended. Any number of callers.
  kj::Promise<std::string> exited() { return exit.addBranch(); }

  // `call`, but if the worker ends first, the error says how it ended instead of "disconnected".
  template <typename T>
  kj::Promise<T> orExit(kj::Promise<T> call) {
    return call.catch_([this](kj::Exception&& exception) -> kj::Promise<T> {
      if (exception.getType() != kj::Exception::Type::DISCONNECTED) return kj::mv(exception);
      kill();  // has no effect if it has already ended, which is then the reported end
      return exited().then([](std::string how) -> kj::Promise<T> { fail("the vgpu-worker " + how); });
    });
  }

  // Stops its threads between two frames, and waits for the GPUs up to the timeout. Rejects also if the worker does not reply.
  kj::Promise<void> quiesce(kj::Timer& timer, control::Progress::Client progress, unsigned timeoutSeconds);
  // After a quiesce that is given up: resolves when the worker goes on, or has ended. It writes no snapshot after that.
  kj::Promise<void> goOn();

  void kill();
  // Kills the process and resolves when it is reaped and all its memory and devices are free.
  kj::Promise<void> stop();

 private:
  struct Connection;

  kj::Own<Connection> connection;
  pid_t process = 0;
  kj::AutoCloseFd handle;  // a pidfd: unlike a pid, it can never refer to another process
  kj::ForkedPromise<std::string> exit = nullptr;
  control::Worker::Client client = nullptr;
  Mapping counters;
};

}  // namespace vgpu::daemon
