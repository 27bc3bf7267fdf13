// A vgpu-worker: the process, and the connection on which it gets its calls.
//
// The object owns the process: destroying it kills the process, at once and whatever it does, because a worker has
// nothing that must be kept. `Processes` reaps it.
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

// Which device workers serve, as `vgpu-worker --device` takes it, and the environment that goes with it.
struct WorkerKind {
  std::string device;                    // "cuda", "emulated:/…/libvgpu-emulator.so"
  std::string label;                     // "cuda", "emulated"
  std::vector<std::string> environment;  // NAME=VALUE, in addition to what every worker gets
  std::vector<std::string> arguments;    // of vgpu-worker, likewise
  int pinnedMemory = -1;                 // a descriptor of the daemon's; not its own
  // A driver's start takes 0.2 to 0.4 s (docs/facts.md); on a machine with many GPUs several seconds.
  kj::Duration startLimit = 60 * kj::SECONDS;
};

class WorkerProcess {
 public:
  // Throws kj::Exception if no process can be started.
  WorkerProcess(kj::AsyncIoContext& io, Processes& processes, const WorkerKind& kind);
  ~WorkerProcess() noexcept(false);
  KJ_DISALLOW_COPY(WorkerProcess);

  pid_t pid() const { return process; }
  control::Worker::Client& remote() { return client; }
  // As the worker counts; read from its memory, without asking it.
  const WorkerCounters& counted() const;

  // Resolves to how the process ended. Any number of callers.
  kj::Promise<std::string> exited() { return exit.addBranch(); }

  // `call`; if the worker ends first, the error says how it ended instead of "disconnected".
  template <typename T>
  kj::Promise<T> orExit(kj::Promise<T> call) {
    return call.catch_([this](kj::Exception&& exception) -> kj::Promise<T> {
      if (exception.getType() != kj::Exception::Type::DISCONNECTED) return kj::mv(exception);
      kill();  // if it has ended by itself, that is how it ended
      return exited().then([](std::string how) -> kj::Promise<T> { fail("the vgpu-worker " + how); });
    });
  }

  // Has its threads stop between two frames, and waits for the GPUs, so long at most. Rejects also if the worker does not reply.
  kj::Promise<void> quiesce(kj::Timer& timer, control::Progress::Client progress, unsigned timeoutSeconds);
  // After a quiesce that is given up: resolves when the worker goes on, or has ended. It writes no snapshot then.
  kj::Promise<void> goOn();

  void kill();
  // Kills the process and resolves when it is reaped and all its memory and devices are free.
  kj::Promise<void> stop();

 private:
  struct Connection;

  kj::Own<Connection> connection;
  pid_t process = 0;
  kj::AutoCloseFd handle;  // a pidfd: unlike the number, it cannot come to mean another process
  kj::ForkedPromise<std::string> exit = nullptr;
  control::Worker::Client client = nullptr;
  Mapping counters;
};

}  // namespace vgpu::daemon
