#include "tools/vgpud/worker-pool.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "tools/common/reason.h"
#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

// A driver's start takes 0.2 to 0.4 s (docs/facts.md); on a machine with many GPUs several seconds.
constexpr auto startLimit = 60 * kj::SECONDS;
// A worker that dies while it waits (a driver that is being replaced, for instance) is not started again at once.
constexpr auto restartDelay = 1 * kj::SECONDS;

}  // namespace

WorkerPool::WorkerPool(kj::AsyncIoContext& io, Processes& processes, WorkerKind kind, unsigned warm)
    : io(io), processes(processes), kind(std::move(kind)), warm(warm), tasks(*this) {}

// The first one reports the devices, even if none is to be kept waiting; a program takes it then.
kj::Promise<void> WorkerPool::begin() {
  return prepare().ready.addBranch().then([this] { refill(); });
}

WorkerPool::Waiting& WorkerPool::prepare() {
  auto owned = kj::heap<Waiting>();
  Waiting& next = *owned;
  next.worker = kj::heap<WorkerProcess>(io, processes, kind);
  auto greeted = next.worker->remote().helloRequest().send().then(
      [this, &next](capnp::Response<control::Worker::HelloResults>&& hello) {
        next.isReady = true;
        learnDevices(hello.getDevices());
      });
  next.ready = next.worker->orExit(kj::mv(greeted))
                   .exclusiveJoin(io.provider->getTimer().afterDelay(startLimit).then([] {
                     fail("a vgpu-worker was not ready in 60 s");
                   }))
                   .fork();
  tasks.add(next.worker->exited().then([this, dead = &next](std::string) { replace(dead); }));
  return *waiting.add(kj::mv(owned));
}

// If none can be started, those that wait still serve; the next program that takes one tries again.
void WorkerPool::refill() {
  tasks.add(kj::evalNow([this]() -> kj::Promise<void> {
    while (!closed && waiting.size() < warm) prepare();
    return kj::READY_NOW;
  }));
}

// A session's devices report that kernels cannot access pageable memory, but on some machines kernels can access their worker's.
// All programs of a daemon belong to its user, who can read these processes anyway.
void WorkerPool::warnOfHostAccess(capnp::List<control::Device>::Reader devices) {
  for (auto device : devices)
    if (device.getReadsHostMemory() && !std::exchange(hasWarned, true))
      spdlog::warn("{}: kernels on this device can read and write all memory of the worker that runs them "
                   "(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS); do not run programs there that you would not run as yourself",
                   device.getName().cStr());
}

void WorkerPool::learnDevices(capnp::List<control::Device>::Reader devices) {
  warnOfHostAccess(devices);
  found.clear();
  for (auto device : devices) {
    found.push_back({device.getOrdinal(), device.getName().cStr(), device.getUuid().cStr(), device.getMemoryBytes()});
  }
}

void WorkerPool::replace(Waiting* dead) {
  auto place = std::find_if(waiting.begin(), waiting.end(), [&](auto& one) { return one.get() == dead; });
  if (place == waiting.end() || !dead->isReady || closed) return;
  spdlog::warn("a waiting worker ended; another one is started");
  std::move(place + 1, waiting.end(), place);
  waiting.removeLast();
  tasks.add(io.provider->getTimer().afterDelay(restartDelay).then([this] { refill(); }));
}

kj::Promise<kj::Own<WorkerProcess>> WorkerPool::take() {
  if (closed) fail("this vgpud is ending");
  if (waiting.empty()) prepare();
  auto best = std::find_if(waiting.begin(), waiting.end(), [](auto& one) { return one->isReady; });
  if (best == waiting.end()) best = waiting.begin();
  kj::Own<Waiting> taken = kj::mv(*best);
  std::move(best + 1, waiting.end(), best);
  waiting.removeLast();
  auto ready = taken->ready.addBranch();
  return ready.then([this, taken = kj::mv(taken)]() mutable { return greetAgain(kj::mv(taken->worker)); });
}

std::vector<pid_t> WorkerPool::warmWorkers() const {
  std::vector<pid_t> pids;
  for (auto& one : waiting)
    if (one->isReady) pids.push_back(one->worker->pid());
  return pids;
}

// A worker may have died since it was ready, without our having noticed yet. Then another one replaces it.
kj::Promise<kj::Own<WorkerProcess>> WorkerPool::greetAgain(kj::Own<WorkerProcess> worker) {
  refill();
  auto answered = worker->remote().helloRequest().send().then(
      [](capnp::Response<control::Worker::HelloResults>&&) -> kj::Promise<bool> { return true; },
      [](kj::Exception&& exception) -> kj::Promise<bool> {
        if (exception.getType() != kj::Exception::Type::DISCONNECTED) return kj::mv(exception);
        return false;
      });
  return answered.then([this, worker = kj::mv(worker)](bool lives) mutable -> kj::Promise<kj::Own<WorkerProcess>> {
    if (lives) return kj::mv(worker);
    return take();
  });
}

std::string WorkerPool::deviceLabel() const {
  std::string label = kind.label + " 0";
  return found.size() < 2 ? label : label + "-" + std::to_string(found.size() - 1);
}

void WorkerPool::close() {
  closed = true;
  waiting.clear();
}

void WorkerPool::taskFailed(kj::Exception&& exception) { spdlog::warn("no worker: {}", reasonOf(exception)); }

}  // namespace vgpu::daemon
