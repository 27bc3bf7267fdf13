// Workers started ahead: they wait with driver, context and a session's shared memory ready, so that a session attaches
// in milliseconds. One that is taken is replaced in the background.
#pragma once

#include <kj/async-io.h>

#include <string>
#include <vector>

#include "tools/vgpud/worker-process.h"

namespace vgpu::daemon {

struct DeviceInfo {
  uint32_t ordinal = 0;
  std::string name, uuid;
  uint64_t memoryBytes = 0;
};

class WorkerPool final : private kj::TaskSet::ErrorHandler {
 public:
  // Keeps `warm` workers waiting; with 0 every session waits for a worker's start.
  WorkerPool(kj::AsyncIoContext& io, Processes& processes, WorkerKind kind, unsigned warm);

  // Starts the first worker; resolves when it is ready and the node's devices are known. Rejects if the driver or
  // the emulated device does not work, with the worker's reason.
  kj::Promise<void> begin();

  // A ready worker, owned by the caller; another one is started to replace it. Throws if none waits and none can be started.
  kj::Promise<kj::Own<WorkerProcess>> take();

  // The process ids of the workers that wait ready.
  std::vector<pid_t> warmWorkers() const;

  const std::vector<DeviceInfo>& devices() const { return found; }
  // "emulated 0", "cuda 0-3": what a session of this node has.
  std::string deviceLabel() const;
  const WorkerKind& workerKind() const { return kind; }

  // Kills the waiting workers and starts no more.
  void close();

 private:
  struct Waiting {
    kj::Own<WorkerProcess> worker;
    kj::ForkedPromise<void> ready = nullptr;
    bool isReady = false;
  };

  kj::Promise<kj::Own<WorkerProcess>> greetAgain(kj::Own<WorkerProcess> worker);
  Waiting& prepare();
  void refill();
  void warnOfHostAccess(capnp::List<control::Device>::Reader devices);
  void learnDevices(capnp::List<control::Device>::Reader devices);
  void replace(Waiting* dead);
  void taskFailed(kj::Exception&& exception) override;

  kj::AsyncIoContext& io;
  Processes& processes;
  WorkerKind kind;
  std::vector<DeviceInfo> found;
  unsigned warm;
  kj::Vector<kj::Own<Waiting>> waiting;  // the oldest first
  bool closed = false, hasWarned = false;
  kj::TaskSet tasks;
};

}  // namespace vgpu::daemon
