#include "stub/worker/worker.h"

#include <kj/debug.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "stub/worker/execution.h"
#include "stub/worker/method-name.h"
#include "stub/worker/ring-consumer.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

// Lock order: `mutex` is the only lock, and no driver call is made under it.
struct Worker::Impl {
  using MakeSession = std::function<std::unique_ptr<SessionState>()>;
  Impl(const Driver& driver, MakeSession makeSession)
      : driver(driver), makeSession(std::move(makeSession)), thread([this] { work(); }) {}
  ~Impl() {
    {
      std::lock_guard lock(mutex);
      ending = true;
      stop();  // under the lock: when the thread sees `ending`, no consumer runs
    }
    thread.join();
  }

  const Driver& driver;
  const MakeSession makeSession;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;  // for the first GPU's thread, while no calls are executed
  bool running = false, ending = false;     // running: calls are to be executed
  unsigned consuming = 0;                   // threads that may be executing calls
  std::atomic<bool> stopRequested{false};
  std::optional<PrimaryContext> kept;     // between release() and recycle(): keeps the context, which would end with the session
  bool isAlone = false;                   // one thread executes a call while all others are stopped
  unsigned awaitsAlone = 0;               // threads in a call that waits to be the only one
  std::unique_ptr<SessionState> session;  // made, used and destroyed on the first GPU's thread, except for each other GPU's Execution
  std::array<std::unique_ptr<RingConsumer>, maxDevices> consumers;  // one for each ring that is used, since the memory was attached
  std::array<std::thread, maxDevices> others;                       // by device, except the first; started when its ring is first used
  std::thread thread;                                               // the first GPU's; last: it uses all members above

  void work();
  void serve(unsigned device);
  void consume(unsigned device, std::unique_lock<std::mutex>& lock);
  void begin();
  void release();
  void recycle();
  void openRing(unsigned device);
  void openRings();
  void closeRings();
  void runTask(const std::function<void()>& task);
  void runAlone(const std::function<void()>& work);
  void stop();
  void wakeConsumers();
};

// The first GPU's thread: executes its calls, or, while no calls are executed, tasks.
void Worker::Impl::work() {
  std::unique_lock lock(mutex);
  while (!ending) {
    if (!tasks.empty()) {
      auto task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
      lock.lock();
    } else if (running && !isAlone && consumers[0]) {
      consume(0, lock);
    } else {
      changed.wait(lock);
    }
  }
  lock.unlock();
  for (std::thread& other : others)
    if (other.joinable()) other.join();
  closeRings();
  session.reset();
}

// The thread of any other GPU.
void Worker::Impl::serve(unsigned device) {
  std::unique_lock lock(mutex);
  while (!ending) {
    if (running && !isAlone && consumers[device]) {
      consume(device, lock);
    } else {
      changed.wait(lock);
    }
  }
}

// One of the three places where our own failures are caught: a message that no honest program sends ends this process, and so this session
// and no other.
void Worker::Impl::consume(unsigned device, std::unique_lock<std::mutex>& lock) try {
  ++consuming;
  lock.unlock();
  session->of(device).gpu.select();
  consumers[device]->consume(stopRequested);
  lock.lock();
  --consuming;
  changed.notify_all();
} catch (const kj::Exception& failure) {
  spdlog::critical("session ends: {}", kj::str(failure).cStr());
  _exit(1);
}

// This function and the next run on the first GPU's thread.
void Worker::Impl::begin() {
  session = makeSession();
  session->startThread = [this](unsigned device) { openRing(device); };
  session->wakeThreads = [this] {
    std::lock_guard lock(mutex);
    wakeConsumers();
  };
  session->stopOthers = [this](const std::function<void()>& work) { runAlone(work); };
}

void Worker::Impl::release() {
  if (const char* residue = session->residue) fail(residue);
  kept.emplace(driver, 0);
  require(driver, kept->take(), "keeping a context");
  closeRings();
  session->destroyAll();
  session.reset();
}

void Worker::Impl::recycle() {
  if (session != nullptr) release();
  begin();
  kept.reset();
}

// On the first GPU's thread. The session already uses the GPU.
void Worker::Impl::openRing(unsigned device) {
  std::lock_guard lock(mutex);
  if (!consumers[device]) {
    session->shared().populateRing(device);
    session->shared().ring(device).isOpen.store(1);
    consumers[device] = std::make_unique<RingConsumer>(session->of(device));
  }
  if (device != 0 && !others[device].joinable()) others[device] = std::thread([this, device] { serve(device); });
  changed.notify_all();
}

void Worker::Impl::closeRings() {
  std::lock_guard lock(mutex);
  for (auto& consumer : consumers) consumer.reset();
}

// Opens the rings that the program has opened: it goes on to use them without opening them again. An existing consumer stays, also after a
// failed quiesce(): continuations that wait for the GPU may belong to it.
void Worker::Impl::openRings() {
  for (unsigned device = 0; device < session->deviceCount(); ++device) {
    if (consumers[device] || (device != 0 && session->shared().ring(device).isOpen.load() == 0)) continue;
    session->begun(device);
    openRing(device);
  }
}

// On the thread of a GPU that executes a call. The other threads stop between two frames; if several threads are in such a call, they run
// one after the other. A concurrent quiesce() waits for this call, as for any.
void Worker::Impl::runAlone(const std::function<void()>& work) {
  std::unique_lock lock(mutex);
  if (consuming == 0) {  // while recipes are executed no thread executes calls
    lock.unlock();
    return work();
  }
  ++awaitsAlone;
  changed.notify_all();
  changed.wait(lock, [&] { return !isAlone; });
  isAlone = true;
  --awaitsAlone;
  stopRequested = true;
  wakeConsumers();
  changed.wait(lock, [&] { return consuming == 1 + awaitsAlone; });
  lock.unlock();
  KJ_DEFER({
    std::lock_guard again(mutex);
    isAlone = false;
    stopRequested = !running;
    changed.notify_all();
  });
  work();
}

// Under the lock.
void Worker::Impl::stop() {
  running = false;
  stopRequested = true;
  changed.notify_all();
  wakeConsumers();
}

// Under the lock.
void Worker::Impl::wakeConsumers() {
  for (auto& consumer : consumers)
    if (consumer) consumer->wake();
}

// Runs `task` on the first GPU's thread, quiesced, and waits; rethrows its exception.
void Worker::Impl::runTask(const std::function<void()>& task) {
  kj::Maybe<kj::Exception> failure;
  bool done = false;
  std::unique_lock lock(mutex);
  KJ_REQUIRE(!running && consuming == 0, "the worker is executing calls; quiesce it first");
  tasks.push_back([&] {
    auto caught = kj::runCatchingExceptions(task);
    std::lock_guard finished(mutex);
    failure = kj::mv(caught);
    done = true;
    changed.notify_all();
  });
  changed.notify_all();
  changed.wait(lock, [&] { return done; });
  lock.unlock();
  KJ_IF_MAYBE (exception, failure) kj::throwFatalException(kj::mv(*exception));
}

Worker::Worker(const Driver& driver, const Images& images, int outputFile, FoldMode fold, LaunchCounters* launches,
               const std::string& libraryFolder)
    : impl(std::make_unique<Impl>(driver, [=, &driver] {
        auto session = std::make_unique<SessionState>(driver, images, outputFile, libraryFolder);
        session->foldMode = fold;
        if (launches != nullptr) session->countIn(*launches);
        return session;
      })) {
  impl->runTask([&] { impl->begin(); });
}

Worker::~Worker() = default;

void Worker::attach(MemoryFile segment, MemoryFile hostArena) {
  runQuiesced([&](SessionState& on) {
    impl->closeRings();
    on.attach(std::move(segment), std::move(hostArena));
  });
}

void Worker::shareBy(std::shared_ptr<Exchange> exchange) {
  runQuiesced([&](SessionState& on) { on.exchange = std::move(exchange); });
}

SharedFiles Worker::sharedFiles() const {
  return {impl->session->sharedFile().fd(), impl->session->hostArenaFile().fd()};
}

void Worker::proceed() {
  auto run = [this](std::lock_guard<std::mutex>&) {
    impl->stopRequested = impl->isAlone;
    impl->running = true;
    impl->changed.notify_all();
  };
  {
    std::lock_guard lock(impl->mutex);
    if (impl->running || impl->consuming != 0) return run(lock);  // a quiesce() was given up before all threads had stopped
  }
  runQuiesced([&](SessionState& on) {
    KJ_REQUIRE(on.isAttached(), "the memory of no session is attached");
    on.shared().header().storesImages.store(on.images.store != nullptr ? 1 : 0);
    on.tellOutput();
    impl->openRings();
  });
  std::lock_guard lock(impl->mutex);
  run(lock);
}

uint64_t Worker::quiesce(const std::function<void(const std::string&)>& waiting) {
  {
    std::unique_lock lock(impl->mutex);
    impl->stop();
    while (!impl->changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return impl->consuming == 0; })) {
      lock.unlock();
      if (waiting) waiting("");  // a thread is inside the driver, perhaps at a launch for which its queue has no room
      lock.lock();
    }
  }
  uint64_t position = 0;
  runQuiesced([&](SessionState& on) {
    // The continuations that run here may give the GPU work again.
    bool more;
    do {
      while (!on.finishSlowCalls(std::chrono::milliseconds(100)))
        if (waiting) waiting("");
      CUresult result = on.awaitIdle(waiting);
      if (result != CUDA_SUCCESS) on.noteFault(result);
      on.dropGraphs();
      more = !on.continueLater();
      require(on.driver, result, "the program's GPU work has failed");
    } while (more);
    on.output.collect();
    position = on.of(0).gpu.executed;
  });
  return position;
}

bool Worker::interlude(bool idle, std::chrono::milliseconds limit, const std::function<void(SessionState&)>& work) {
  auto until = std::chrono::steady_clock::now() + limit;
  std::unique_lock lock(impl->mutex);
  const bool wasRunning = impl->running;
  impl->stop();
  bool haveStopped = impl->changed.wait_until(lock, until, [&] { return impl->consuming == 0; });
  lock.unlock();
  KJ_DEFER(if (wasRunning) proceed());
  if (!haveStopped) return false;
  bool isDone = true;
  runQuiesced([&](SessionState& on) {
    for (unsigned device : idle ? on.usedDevices() : std::vector<unsigned>())
      while (isDone && on.select(device).gpu.query() == CUDA_ERROR_NOT_READY) {
        isDone = std::chrono::steady_clock::now() < until;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    if (isDone) work(on);
    on.select(0);
  });
  return isDone;
}

// Reads the same rings with a reader of its own. A frame that its thread has finished meanwhile is skipped.
std::vector<std::string> Worker::executing() const {
  std::vector<std::string> names;
  std::lock_guard lock(impl->mutex);
  for (unsigned device = 0; device < maxDevices; ++device) {
    if (!impl->consumers[device]) continue;
    auto& executed = impl->session->of(device).gpu.executed;
    const uint64_t position = executed.load();
    auto frame = RingReader(impl->session->shared(), position, device).next();
    if (frame && executed.load() == position) names.push_back(methodName(frame->method));
  }
  return names;
}

void Worker::recycle() {
  impl->runTask([&] { impl->recycle(); });
}

void Worker::release() {
  impl->runTask([&] { impl->release(); });
}

void Worker::runQuiesced(std::function<void(SessionState&)> work) {
  impl->runTask([&] {
    KJ_REQUIRE(impl->session != nullptr, "the worker's session has been released");
    work(*impl->session);
  });
}

}  // namespace vgpu::stub
