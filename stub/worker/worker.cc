#include "stub/worker/worker.h"

#include <kj/debug.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "stub/worker/execution.h"
#include "vgpu/api/effects.h"
#include "vgpu/wire/futex.h"
#include "vgpu/wire/ring.h"

namespace vgpu::stub {

namespace {

// A program that computes between its calls for less than this finds its worker awake. A session that does nothing costs no
// processor time after it.
constexpr uint64_t idleSpin = 2'000'000;  // nanoseconds

// Tells the caller's thread that its frame is complete. The order matters: result and answer before `done` (release).
void complete(SessionState& session, const Frame& frame, CUresult result, std::span<const capnp::word> reply) {
  Slot& slot = session.shared().slot(frame.slot);
  slot.result = result;
  slot.replyWords = static_cast<uint32_t>(reply.size());
  KJ_REQUIRE(reply.empty() || frame.slot < replyCount, "a call whose slot has no room for its answer", frame.slot);
  if (!reply.empty())
    std::memcpy(session.shared().reply(frame.slot), reply.data(), std::min<size_t>(reply.size_bytes(), replyBytes));
  if (reply.size_bytes() > replyBytes) [[unlikely]]
    session.of(frame.device).longReplies[frame.slot].assign(reply.begin(), reply.end());
  slot.done.store(frame.sequence());  // seq_cst: must not sink below the load of `sleeping`
  if (slot.sleeping.load() != 0) {
    slot.wakeups.fetch_add(1);
    futexWake(slot.wakeups, INT_MAX);
  }
}

}  // namespace

// Lock order: `mutex` is the only lock, and no driver call is made under it.
struct Worker::Impl {
  explicit Impl(const Driver& driver) : driver(driver), thread([this] { work(); }) {}
  ~Impl() {
    {
      std::lock_guard lock(mutex);
      ending = true;
      stopRequested = true;
      wake();  // under the lock: once the thread has seen `ending`, its reader is gone
    }
    thread.join();
  }

  const Driver& driver;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;  // for the quiesced working thread
  bool running = false, ending = false;
  std::atomic<bool> stopRequested{false};
  std::unique_ptr<SessionState> session;  // made, used and destroyed on the working thread
  std::unique_ptr<RingReader> reader;    // set while attached; wake() is for any thread
  Reply reply;
  uint32_t busyDevices = 0;    // a bit a device with work that we have not seen to end
  bool waitsForMarks = false;  // some device may have continuations
  std::thread thread;        // last: it uses all of the above

  void work();
  void consume();
  bool step(Backoff& backoff);
  void run(const Frame& frame);
  void postpone(const Frame& frame);
  void watch();
  void runTask(const std::function<void()>& task);
  void wake() {
    changed.notify_all();
    if (reader) reader->wake();
  }
};

// Quiet: wait for tasks. Running: consume until asked to stop.
void Worker::Impl::work() {
  std::unique_lock lock(mutex);
  while (!ending) {
    if (!tasks.empty()) {
      auto task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
      lock.lock();
    } else if (running) {
      lock.unlock();
      consume();
      lock.lock();
      running = !stopRequested;  // proceed() may have come before the frame in hand was executed
      changed.notify_all();
    } else {
      changed.wait(lock);
    }
  }
  reader.reset();
  session.reset();
}

// One of the three places where our own failures are caught: what an honest program never sends ends this process, and
// with it this session and no other.
void Worker::Impl::consume() try {
  Backoff backoff(idleSpin);
  while (!stopRequested.load(std::memory_order_relaxed))
    if (step(backoff)) backoff = Backoff(idleSpin);
} catch (const kj::Exception& failure) {
  spdlog::critical("session ends: {}", kj::str(failure).cStr());
  _exit(1);
}

// Executes one frame; false where there was none to execute.
bool Worker::Impl::step(Backoff& backoff) {
  if (waitsForMarks) [[unlikely]] waitsForMarks = !session->continueLater();
  auto frame = reader->next();
  if (!frame) {
    if (backoff.spin()) return false;
    reader->sleep(waitsForMarks ? backoff.sleepNanoseconds() : busyDevices != 0 ? 1'000'000 : 1'000'000'000);
    if (busyDevices != 0) watch();
    return false;
  }
  run(*frame);
  reader->release();
  session->ringPosition = reader->position();
  return true;
}

void Worker::Impl::run(const Frame& frame) {
  reply.reset();
  auto& info = api::infoOf(frame.method);
  CUresult result =
      session->execute(frame.method, frame.device, frame.words, frame.position, frame.slot, reply);
  if (isSticky(result)) session->noteFault(result);
  bool isDevice = frame.device < session->deviceCount();
  bool waits = isDevice && !session->of(frame.device).gpu.later.isEmpty();
  waitsForMarks |= waits;
  if (!info.noWork) busyDevices |= 1u << frame.device;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && info.route == api::Route::CALL && waits)
    return postpone(frame);
  if (info.route == api::Route::POST) {
    if (result != CUDA_SUCCESS && isDevice) session->noteDeferred(frame.device, result);
  } else if (!reply.isLeftToGpu() || result != CUDA_SUCCESS) {
    complete(*session, frame, result, reply.words());  // a refused module's log comes with the refusal
  }
}

// Executes the frame once more when the GPU has passed its last mark: it lacked memory that is being given back.
void Worker::Impl::postpone(const Frame& frame) {
  auto words = std::make_shared<const kj::Array<capnp::word>>(kj::heapArray(frame.words));
  Gpu& gpu = session->of(frame.device).gpu;
  gpu.later.add(gpu.progress.lastMark(), [this, frame = Frame(frame), words](CUresult) mutable {
    frame.words = words->asPtr();
    run(frame);
  });
}

// Looks after the GPU while no frames come: a context that faulted will never write its completions, so its error is
// put where every waiter looks.
void Worker::Impl::watch() {
  for (unsigned device = 0; device < session->deviceCount(); ++device) {
    if ((busyDevices & (1u << device)) == 0 || session->isEnded(device)) continue;
    CUresult state = session->select(device).gpu.query();
    if (state == CUDA_ERROR_NOT_READY) continue;
    if (state != CUDA_SUCCESS) session->noteFault(state);
    busyDevices &= ~(1u << device);
    if (!session->prints) continue;
    session->of(device).collectOutput();  // of which the program's next launch is told
    session->tellOutput();
  }
}

// Runs `task` on the working thread, quiesced and waits; its exception comes out here.
void Worker::Impl::runTask(const std::function<void()>& task) {
  kj::Maybe<kj::Exception> failure;
  bool done = false;
  std::unique_lock lock(mutex);
  KJ_REQUIRE(!running, "the worker consumes; quiesce it first");
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

Worker::Worker(const Driver& driver, const Images& images, int outputFile) : impl(std::make_unique<Impl>(driver)) {
  impl->runTask([&] { impl->session = std::make_unique<SessionState>(driver, images, outputFile); });
}

Worker::~Worker() = default;

void Worker::attach(MemoryFile segment, MemoryFile hostArena) {
  runQuiesced([&](SessionState& on) { on.attach(std::move(segment), std::move(hostArena)); });
}

SharedFiles Worker::sharedFiles() const {
  return {impl->session->sharedFile().fd(), impl->session->hostArenaFile().fd()};
}

void Worker::proceed() {
  {
    std::lock_guard lock(impl->mutex);
    impl->stopRequested = false;
    if (impl->running) return;
  }
  runQuiesced([&](SessionState& on) {
    KJ_REQUIRE(on.isAttached(), "no session's memory is attached");
    on.shared().header().storesImages.store(on.images.store != nullptr ? 1 : 0);
    on.tellOutput();
    impl->reader = std::make_unique<RingReader>(on.shared(), on.ringPosition);
  });
  std::lock_guard lock(impl->mutex);
  impl->running = true;
  impl->changed.notify_all();
}

uint64_t Worker::quiesce(const std::function<void(const std::string&)>& waiting) {
  {
    std::unique_lock lock(impl->mutex);
    impl->stopRequested = true;
    impl->wake();
    while (!impl->changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return !impl->running; })) {
      lock.unlock();
      if (waiting) waiting("");  // the thread is in the driver, with a launch for which there is no room, perhaps
      lock.lock();
    }
  }
  uint64_t position = 0;
  runQuiesced([&](SessionState& on) {
    // What continues now may give the GPU work again.
    bool more;
    do {
      CUresult result = on.awaitIdle(waiting);
      if (result != CUDA_SUCCESS) on.noteFault(result);
      more = !on.continueLater();
      require(on.driver, result, "the program's GPU work has failed and cannot be suspended");
    } while (more);
    on.output.collect();
    position = on.ringPosition;
  });
  return position;
}

void Worker::runQuiesced(std::function<void(SessionState&)> work) {
  impl->runTask([&] { work(*impl->session); });
}

}  // namespace vgpu::stub
