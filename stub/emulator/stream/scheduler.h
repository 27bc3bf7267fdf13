// Runs the device's work. Streams, events and graphs are all represented here by tasks with predecessors.
//
// A task whose predecessors are done is run: a light one at once on the thread that found it ready, any other by an
// executor thread. Executors sleep while nothing is ready; one more is started when something is ready and all are
// busy, so a task that blocks (a host function, a kernel that waits for another) never keeps others from running. Where
// the system has no more threads, those that there are do it, at last the caller's. The clock thread looks after stream waits
// on memory and deadlines of kernels; it is the only thing that polls.
//
// Lock order of the whole emulator, outermost first; a thread takes locks downward only and calls no outside code (host
// functions, kernels, actions) while it holds one:
//   1. Context::lifeMutex      primary context counts, creation and destruction of contexts
//   2. GraphExec::mutex, Library::mutex
//   3. StreamSet::mutex        order of work between the streams of a context
//   4. Driver::graphMutex      graphs and captures
//   5. LoadedModule's two      decoding of kernels, handles of functions
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

// Where a task's failure belongs: tasks of a failed domain are completed without being run.
class Domain {
 public:
  virtual ~Domain() = default;
  virtual bool failed() const = 0;
};

// Of tasks that are run whatever has failed.
const Domain& unfailing();

enum class Weight { light, heavy };  // light: microseconds at most, may run on the caller's thread
// Of work on so many bytes of memory: waking another thread for fewer would take longer.
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
  int pending = 1;                                // unfinished predecessors, and one until started
  std::vector<std::shared_ptr<Task>> dependents;  // those that wait for this one
  std::atomic<int> completed{0};
};
using TaskRef = std::shared_ptr<Task>;

class Scheduler {
 public:
  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;

  // Once, before all else. From here on the scheduler lives as long as the process. Throws std::system_error if the system has no
  // thread for it.
  void startClock();

  // Ties `task` behind `predecessors`. It does not run before start(); others may be tied behind it meanwhile.
  void tie(const TaskRef& task, std::span<const TaskRef> predecessors);
  void start(const TaskRef& task);

  // Calls `expired` on the clock thread at `deadline`, unless cancel() came first. Returns what cancel() takes.
  // When cancel() has returned, `expired` is not running and will not run.
  using Deadline = std::chrono::steady_clock::time_point;
  uint64_t setAlarm(Deadline deadline, std::function<void()> expired);
  void cancelAlarm(uint64_t alarm);

 private:
  struct Alarm {
    uint64_t number;
    Deadline deadline;
    std::function<void()> expired;
  };
  // Tasks that became ready: those for the caller to run, light ones where there are executors, and where an executor asks for
  // one, a heavy one that it goes on with itself.
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
  int executors = 0, idle = 0, woken = 0;  // woken: idle ones that were called and have not come yet
  std::vector<TaskRef> waiters;            // tasks whose action said `waiting`
  std::vector<Alarm> alarms;
  uint64_t nextAlarm = 1, ringing = 0;
};

}  // namespace vgpu::emulator::api
