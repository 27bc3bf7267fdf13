// Runs the device's work. Streams, events and graphs are all represented by tasks with predecessors.
//
// A task runs when its predecessors are done: a light one at once on the thread that finished the last of them, any other on an executor
// thread. Executors sleep while nothing is ready; one more is started when a task is ready and all are busy, so a task that blocks (a host
// function, a kernel that waits for another) does not keep others from running. If the system has no more threads, the existing ones run
// the tasks, and without any the caller's. The clock thread checks stream waits for memory words and the deadlines of kernels; it is the
// only thread that polls.
//
// Lock order of the whole emulator, outermost first. A thread calls no outside code (host functions, kernels, actions) while it holds a
// lock:
//   1. Context::lifeMutex      primary context counts, creation and destruction of contexts
//   2. GraphExec::mutex, Library::mutex
//   3. StreamSet::mutex        order of work between the streams of a context
//   4. Driver::graphMutex      graphs and captures
//   5. both of LoadedModule    decoding of kernels, handles of functions
//   6. Registry::mutex         handle to object
//   7. DevicePool::mutex       sub-allocation of device memory
//   8. AddressSpace::mutex     reservations, mappings, notes
//   9. Scheduler::mutex        tasks and executors
//   leaves: Context::outputMutex, Event::mutex, VaRange, TextureObjects, Driver::poolMutex, those of device-graph-*.h
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace vgpu::emulator::api {

enum class Outcome { finished, waiting };  // waiting: run the action again a little later
using Action = std::function<Outcome()>;

// The owner of a task's failures: tasks of a failed domain are completed without being run.
class Domain {
 public:
  virtual ~Domain() = default;
  virtual bool failed() const = 0;
};

// The domain of tasks that run whatever has failed.
const Domain& unfailing();

enum class Weight { light, heavy };  // light: microseconds at most, may run on the caller's thread
// The weight of work on so many bytes: for few bytes, waking another thread would take longer.
constexpr Weight weightOf(uint64_t bytes) { return bytes <= 64 << 10 ? Weight::light : Weight::heavy; }

class Task {
 public:
  Task(const Domain& domain, Weight weight, Action action)
      : domain(domain), weight(weight), action(std::move(action)) {}
  Task(const Task&) = delete;
  bool done() const { return completed.load(std::memory_order_acquire) != 0; }
  void wait() const {
    while (!done()) completed.wait(0, std::memory_order_acquire);
  }

 private:
  friend class Scheduler;
  const Domain& domain;
  Weight weight;
  Action action;
  int pending = 1;                                // number of unfinished predecessors, plus one until start()
  std::vector<std::shared_ptr<Task>> dependents;  // tasks that wait for this one
  std::atomic<int> completed{0};
};
using TaskRef = std::shared_ptr<Task>;

class Scheduler {
 public:
  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;

  // Call once, first. Afterwards the scheduler must live as long as the process. Throws std::system_error if the system refuses a thread.
  void startClock();

  // Adds `predecessors` to `task`. It does not run before start(); until then other tasks may be tied to it.
  void tie(const TaskRef& task, std::span<const TaskRef> predecessors);
  void start(const TaskRef& task);

  // Calls `expired` on the clock thread at `deadline`, unless cancelAlarm() comes first, to which the returned number is passed. After
  // cancelAlarm() returns, `expired` is not running and will not run.
  using Deadline = std::chrono::steady_clock::time_point;
  uint64_t setAlarm(Deadline deadline, std::function<void()> expired);
  void cancelAlarm(uint64_t alarm);

 private:
  struct Alarm {
    uint64_t number;
    Deadline deadline;
    std::function<void()> expired;
  };
  // Tasks that became ready. own: for the caller to run (light ones, and heavy ones if there are no executors). heavy: with which an
  // executor that asks for one goes on itself.
  struct Ready {
    std::vector<TaskRef> own;
    TaskRef heavy;
    bool takesHeavy = false;
  };
  void execute(Ready& ready);
  bool runAction(const TaskRef& task);
  void finish(const TaskRef& task, Ready& ready);
  void release(const TaskRef& task, Ready& ready);
  bool startExecutor();
  TaskRef nextReady();
  void executorLoop();
  void clockLoop();
  std::vector<TaskRef> takeFinishedWaiters(std::unique_lock<std::mutex>& lock);

  std::mutex mutex;
  std::condition_variable work, clock, alarmDone;
  std::deque<TaskRef> readyTasks;
  int executors = 0, idle = 0, woken = 0;  // woken: idle executors that were notified and have not resumed yet
  std::vector<TaskRef> waiters;            // tasks whose action returned `waiting`
  std::vector<Alarm> alarms;
  uint64_t nextAlarm = 1, ringing = 0;
};

}  // namespace vgpu::emulator::api
