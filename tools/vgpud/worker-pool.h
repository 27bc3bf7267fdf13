// Workers that wait with driver, context and a session's shared memory ready, so that a session attaches in milliseconds. Some are started
// ahead. Others have served a program that has ended, and are reset to a new worker's state (Worker.recycle), so that a series of programs
// does not wait for the driver to start. How many wait depends on how fast programs arrive (warm-target.h).
#pragma once

#include <kj/async-io.h>

#include <deque>
#include <string>
#include <vector>

#include "tools/vgpud/kept-workers.h"
#include "tools/vgpud/warm-target.h"
#include "tools/vgpud/worker-process.h"

namespace vgpu::daemon {

struct DeviceInfo {
  uint32_t ordinal = 0;
  std::string name, uuid;
  uint64_t memoryBytes = 0;
  uint64_t freeBytes = 0;  // as the worker reported when it began, or when it was last taken
};

class WorkerPool final : private kj::TaskSet::ErrorHandler {
 public:
  static constexpr unsigned mostWaiting = 64;

  // Keeps at least `warm` workers waiting, at most mostWaiting; with 0 a session waits for a worker to start, unless a used one waits.
  // Additional workers wait for the time `recycle`; with 0 there are none, and no worker is reused.
  WorkerPool(kj::AsyncIoContext& io, Processes& processes, WorkerKind kind, unsigned warm, kj::Duration recycle);

  // Starts the first worker; resolves when it is ready and the node's devices are known. Rejects with the worker's reason if the driver or
  // the emulated device does not work.
  kj::Promise<void> begin();

  // Whether a used worker is acceptable.
  enum class Want { any, fresh };
  // A ready worker, owned by the caller: a waiting one, or the first that becomes ready. Rejects if none can be started.
  kj::Promise<kj::Own<WorkerProcess>> take(Want want = Want::any);

  // Returns the worker of a program that has ended. The worker is ended if it is not to be reused, or cannot be reset.
  void giveBack(kj::Own<WorkerProcess> worker);

  // Returns the worker of a suspended session: makes it release the session first. Resolves when the GPUs are free.
  kj::Promise<void> retire(kj::Own<WorkerProcess> worker);

  KeptWorkers kept{*this};

  struct WaitingWorker {
    pid_t pid;
    bool isUsed;  // it has served a program
  };
  std::vector<WaitingWorker> waiting() const;

  const std::vector<DeviceInfo>& devices() const { return found; }
  // "emulated 0", "cuda 0-3": for a session that may use all devices; "cuda 2,0": for one that has these.
  std::string deviceLabel(const std::vector<uint32_t>& devices) const;
  const WorkerKind& workerKind() const { return kind; }

  // Kills the waiting workers and starts no more.
  void close();

 private:
  struct Ready {
    kj::Own<WorkerProcess> worker;
    bool wasUsed;
    kj::TimePoint since;
  };
  struct Taker {
    Want want;
    uint64_t begun;  // value of `begun` at its arrival
    kj::Own<kj::PromiseFulfiller<kj::Own<WorkerProcess>>> fulfiller;
  };

  kj::Promise<void> start();
  void offer(kj::Own<WorkerProcess> worker, bool wasUsed);
  void serveTakers();
  void startForTakers();
  void startUpTo(size_t wanted);
  void startFailed(uint64_t number, kj::Exception&& reason);
  kj::Promise<kj::Own<WorkerProcess>> greetAgain(kj::Own<WorkerProcess> worker, Want want);
  void refill();
  void refillAfter(kj::Duration delay);
  kj::Promise<void> shrink();
  Ready* best(Want want);
  kj::Own<Ready> remove(Ready* one);
  void replaceWaiting(pid_t dead);
  bool hasRoom() const;
  void warnOfHostAccess(capnp::List<control::Device>::Reader devices);
  void learnDevices(capnp::List<control::Device>::Reader devices);
  void taskFailed(kj::Exception&& exception) override;
  kj::TimePoint now() const { return io.provider->getTimer().now(); }

  kj::AsyncIoContext& io;
  Processes& processes;
  WorkerKind kind;
  std::vector<DeviceInfo> found;
  bool devicesHaveRoom = true;
  WarmTarget target;
  const kj::Duration recycle;
  kj::Vector<kj::Own<Ready>> ready;  // oldest first
  std::deque<Taker> takers;          // oldest first
  uint64_t begun = 0;                // number of starts so far
  unsigned starting = 0;             // workers that are not ready yet
  unsigned returning = 0;            // workers that are destroying what their last session has made
  bool closed = false, hasWarned = false;
  kj::Promise<void> refilling = nullptr;
  kj::TaskSet tasks;
};

}  // namespace vgpu::daemon
