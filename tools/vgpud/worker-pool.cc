#include "tools/vgpud/worker-pool.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "tools/common/reason.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/machine-memory.h"

namespace vgpu::daemon {
namespace {

class SpareMemoryServer final : public control::SpareMemory::Server {
 public:
  explicit SpareMemoryServer(KeptWorkers& kept) : kept(kept) {}

 protected:
  kj::Promise<void> free(FreeContext context) override {
    return kept.freeOldest().then([context](bool freed) mutable { context.getResults().setFreed(freed); });
  }

 private:
  KeptWorkers& kept;
};

// A worker that dies while it waits (for instance because the driver is being replaced) is not restarted at once.
constexpr auto restartDelay = 1 * kj::SECONDS;
// Refilling waits until no worker has been taken or given back for this long: a short program returns its worker before, and starting a
// driver slows concurrent short programs down.
constexpr auto refillDelay = 200 * kj::MILLISECONDS;
// Destroying a session's objects takes milliseconds; a driver that takes this long is in trouble.
constexpr auto recycleLimit = 5 * kj::SECONDS;
// The same for a worker whose session was suspended.
constexpr auto releaseLimit = 5 * kj::SECONDS;
constexpr auto shrinkInterval = 1 * kj::SECONDS;

// The part of the machine's memory, and of each GPU's, that must stay free for programs: workers beyond the number that the daemon was told
// to keep are started only if it does.
constexpr bool isEnough(uint64_t available, uint64_t total) { return available >= total / 4; }

}  // namespace

WorkerPool::WorkerPool(kj::AsyncIoContext& io, Processes& processes, WorkerKind kind, unsigned warm, kj::Duration recycle)
    : io(io), processes(processes), kind(std::move(kind)), target(warm, recycle == 0 * kj::SECONDS ? warm : mostWaiting, recycle), recycle(recycle), tasks(*this) {}

// The first worker reports the devices, even if none is to be kept waiting; a program then takes it.
kj::Promise<void> WorkerPool::begin() {
  return start().then([this] {
    refill();
    tasks.add(shrink());
  });
}

// Rejects if the worker does not become ready.
kj::Promise<void> WorkerPool::start() {
  auto worker = kj::heap<WorkerProcess>(io, processes, kind);
  ++starting;
  auto hello = worker->remote().helloRequest();
  hello.setSpare(kj::heap<SpareMemoryServer>(kept));
  auto greeted =
      hello.send().then([this](capnp::Response<control::Worker::HelloResults>&& hello) { learnDevices(hello.getDevices()); });
  auto late = io.provider->getTimer().afterDelay(kind.startLimit).then([seconds = kind.startLimit / kj::SECONDS] {
    fail("a vgpu-worker was not ready in " + std::to_string(seconds) + " s");
  });
  auto begun = worker->orExit(kj::mv(greeted)).exclusiveJoin(kj::mv(late));
  return begun.then(
      [this, worker = kj::mv(worker)]() mutable {
        --starting;
        tasks.add(worker->exited().then([this, pid = worker->pid()](std::string) { replaceWaiting(pid); }));
        offer(kj::mv(worker), false);
      },
      [this](kj::Exception&& reason) {
        --starting;
        kj::throwFatalException(kj::mv(reason));
      });
}

void WorkerPool::offer(kj::Own<WorkerProcess> worker, bool wasUsed) {
  if (closed) return;
  ready.add(kj::heap<Ready>(Ready{kj::mv(worker), wasUsed, now()}));
  serveTakers();
  startForTakers();  // a worker that was started for one taker may have gone to an older one
}

// Prefers a used worker: fresh workers are kept for sessions that need one (Want::fresh).
WorkerPool::Ready* WorkerPool::best(Want want) {
  Ready* chosen = nullptr;
  for (auto& one : ready) {
    if (want == Want::fresh && one->wasUsed) continue;
    if (chosen == nullptr || (one->wasUsed && !chosen->wasUsed)) chosen = one.get();
  }
  return chosen;
}

kj::Own<WorkerPool::Ready> WorkerPool::remove(Ready* one) {
  auto place = std::find_if(ready.begin(), ready.end(), [&](auto& each) { return each.get() == one; });
  kj::Own<Ready> removed = kj::mv(*place);
  std::move(place + 1, ready.end(), place);
  ready.removeLast();
  return removed;
}

void WorkerPool::serveTakers() {
  std::erase_if(takers, [this](Taker& taker) {
    if (!taker.fulfiller->isWaiting()) return true;  // its program has ended
    Ready* found = best(taker.want);
    if (found == nullptr) return false;
    taker.fulfiller->fulfill(kj::mv(remove(found)->worker));
    return true;
  });
}

// Starts as many workers as the takers need, beyond those that will be given back.
void WorkerPool::startForTakers() {
  auto wantFresh =
      static_cast<size_t>(std::count_if(takers.begin(), takers.end(), [](auto& t) { return t.want == Want::fresh; }));
  startUpTo(std::max<size_t>(wantFresh, takers.size() - std::min<size_t>(takers.size(), returning)));
}

// Starts workers until `wanted` are starting. A start that fails is not retried at once.
void WorkerPool::startUpTo(size_t wanted) {
  for (size_t missing = wanted - std::min<size_t>(wanted, starting); !closed && missing > 0; --missing) {
    auto started = kj::evalNow([this] { return start(); });
    tasks.add(started.catch_([this, number = ++begun](kj::Exception&& reason) { startFailed(number, kj::mv(reason)); }));
  }
}

// The longest-waiting taker gets the reason, unless it came after this start had begun: the cause may be gone by then. For the others a
// start is tried again.
void WorkerPool::startFailed(uint64_t number, kj::Exception&& reason) {
  serveTakers();
  if (takers.empty() || takers.front().begun >= number) {
    taskFailed(kj::mv(reason));
  } else {
    takers.front().fulfiller->reject(kj::mv(reason));
    takers.pop_front();
  }
  startForTakers();
}

kj::Promise<kj::Own<WorkerProcess>> WorkerPool::take(Want want) {
  if (closed) fail("this vgpud is shutting down");
  auto given = kj::newPromiseAndFulfiller<kj::Own<WorkerProcess>>();
  takers.push_back({want, begun, kj::mv(given.fulfiller)});
  serveTakers();
  if (!takers.empty()) {
    // The target grows only if every worker that it asked for was present.
    if (starting == 0 && returning < takers.size()) target.missed(now(), hasRoom());
    startForTakers();
  }
  refillAfter(refillDelay);
  return given.promise.then([this, want](kj::Own<WorkerProcess>&& worker) { return greetAgain(kj::mv(worker), want); });
}

// A worker may have died unnoticed since it was ready. Then another one replaces it.
kj::Promise<kj::Own<WorkerProcess>> WorkerPool::greetAgain(kj::Own<WorkerProcess> worker, Want want) {
  auto answered = worker->remote().helloRequest().send().then(
      [this](capnp::Response<control::Worker::HelloResults>&& hello) -> kj::Promise<bool> {
        learnDevices(hello.getDevices());
        return true;
      },
      [](kj::Exception&& exception) -> kj::Promise<bool> {
        if (exception.getType() != kj::Exception::Type::DISCONNECTED) return kj::mv(exception);
        return false;
      });
  return answered.then([this, want, worker = kj::mv(worker)](bool lives) mutable -> kj::Promise<kj::Own<WorkerProcess>> {
    if (lives) return kj::mv(worker);
    return take(want);
  });
}

void WorkerPool::giveBack(kj::Own<WorkerProcess> worker) {
  if (closed || recycle == 0 * kj::SECONDS) return;
  if (ready.size() + returning >= mostWaiting || !hasRoom()) {
    spdlog::info("worker {} is not reused: enough workers wait already, or memory is short", worker->pid());
    return;
  }
  auto late = io.provider->getTimer().afterDelay(recycleLimit).then([] { fail("it did not end its session in 5 s"); });
  auto done = worker->remote().recycleRequest().send().ignoreResult().exclusiveJoin(kj::mv(late));
  pid_t pid = worker->pid();
  ++returning;
  tasks.add(done.then(
      [this, worker = kj::mv(worker)]() mutable {
        --returning;
        offer(kj::mv(worker), true);
        refillAfter(refillDelay);
      },
      [this, pid](kj::Exception&& reason) {
        --returning;
        spdlog::info("worker {} is not reused: {}", pid, reasonOf(reason));
        startForTakers();
        refillAfter(refillDelay);
      }));
}

kj::Promise<void> WorkerPool::retire(kj::Own<WorkerProcess> worker) {
  auto late = io.provider->getTimer().afterDelay(releaseLimit).then([] { fail("it did not release its session in 5 s"); });
  auto released = worker->remote().releaseRequest().send().ignoreResult().exclusiveJoin(kj::mv(late));
  return released
      .then([] { return true; },
            [pid = worker->pid()](kj::Exception&& reason) {
              spdlog::info("worker {} is not reused: {}", pid, reasonOf(reason));
              return false;
            })
      .then([this, worker = kj::mv(worker)](bool isReleased) mutable -> kj::Promise<void> {
        if (isReleased) {
          giveBack(kj::mv(worker));
          return kj::READY_NOW;
        }
        auto stopped = worker->stop();
        return stopped.attach(kj::mv(worker));
      });
}

// If no worker can be started, waiting ones still serve; the next program that takes one triggers another start.
void WorkerPool::refill() {
  serveTakers();
  size_t wanted = takers.size() + target.count(), there = ready.size() + returning;
  size_t missing = wanted - std::min(wanted, there);
  // A session that is resumed accepts no used worker, and would have to wait for a driver to start.
  bool lacksFresh = target.count() > 0 && std::all_of(ready.begin(), ready.end(), [](auto& one) { return one->wasUsed; });
  startUpTo(std::max<size_t>(missing, lacksFresh && hasRoom() ? 1 : 0));
}

void WorkerPool::refillAfter(kj::Duration delay) {
  refilling = io.provider->getTimer().afterDelay(delay).then([this] { refill(); }).eagerlyEvaluate(nullptr);
}

// Ends workers beyond the target: used ones before fresh ones, those that have waited longest first.
kj::Promise<void> WorkerPool::shrink() {
  return io.provider->getTimer().afterDelay(shrinkInterval).then([this] {
    target.pass(now());
    while (ready.size() > target.count()) {
      auto used = std::find_if(ready.begin(), ready.end(), [](auto& one) { return one->wasUsed; });
      Ready* next = (used != ready.end() ? *used : ready.front()).get();
      if (now() - next->since < recycle) break;
      remove(next);
    }
    return shrink();
  });
}

// A worker that ends while it serves or ends a session is not waiting: its caller notices.
void WorkerPool::replaceWaiting(pid_t dead) {
  auto found = std::find_if(ready.begin(), ready.end(), [&](auto& each) { return each->worker->pid() == dead; });
  if (closed || found == ready.end()) return;
  spdlog::warn("a waiting worker ended; another one is started");
  remove(found->get());
  refillAfter(restartDelay);
}

std::vector<WorkerPool::WaitingWorker> WorkerPool::waiting() const {
  std::vector<WaitingWorker> all;
  for (auto& one : ready) all.push_back({one->worker->pid(), one->wasUsed});
  return all;
}

bool WorkerPool::hasRoom() const {
  MachineMemory memory = machineMemory();
  return devicesHaveRoom && isEnough(memory.availableBytes, memory.totalBytes);
}

// A session's devices report that kernels cannot access pageable memory, but on some machines kernels can access the worker process's
// memory. All programs of a daemon belong to its user, who can read these processes anyway.
void WorkerPool::warnOfHostAccess(capnp::List<control::Device>::Reader devices) {
  for (auto device : devices)
    if (device.getReadsHostMemory() && !std::exchange(hasWarned, true))
      spdlog::warn(
          "{}: kernels on this device can read and write all memory of the worker that runs them "
          "(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS); do not run programs there that you would not run as yourself",
          device.getName().cStr());
}

void WorkerPool::learnDevices(capnp::List<control::Device>::Reader devices) {
  warnOfHostAccess(devices);
  found.clear();
  devicesHaveRoom = true;
  for (auto device : devices) {
    found.push_back(
        {device.getOrdinal(), device.getName().cStr(), device.getUuid().cStr(), device.getMemoryBytes(), device.getFreeBytes()});
    devicesHaveRoom &= isEnough(device.getFreeBytes(), device.getMemoryBytes());
  }
}

std::string WorkerPool::deviceLabel(const std::vector<uint32_t>& devices) const {
  if (!devices.empty()) return fmt::format("{} {}", kind.label, fmt::join(devices, ","));
  std::string label = kind.label + " 0";
  return found.size() < 2 ? label : label + "-" + std::to_string(found.size() - 1);
}

void WorkerPool::close() {
  closed = true;
  ready.clear();
  kept.clear();
  takers.clear();
}

void WorkerPool::taskFailed(kj::Exception&& exception) { spdlog::warn("no worker: {}", reasonOf(exception)); }

}  // namespace vgpu::daemon
