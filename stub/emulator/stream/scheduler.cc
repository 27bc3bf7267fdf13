#include "stub/emulator/stream/scheduler.h"

#include <algorithm>
#include <cstdio>
#include <exception>

namespace vgpu::emulator::api {
namespace {

// How often a stream's wait for a memory word is checked. Another process may write the word, which sends no notification.
constexpr std::chrono::microseconds pollInterval{50};

// The most kernels that the largest devices run at a time (CUDA C++ Programming Guide, technical specifications).
constexpr int maximumExecutors = 128;

}  // namespace

const Domain& unfailing() {
  struct Unfailing : Domain {
    bool failed() const override { return false; }
  };
  static const Unfailing domain;
  return domain;
}

void Scheduler::tie(const TaskRef& task, std::span<const TaskRef> predecessors) {
  std::lock_guard lock(mutex);
  for (const TaskRef& before : predecessors) {
    if (!before || before->done()) continue;
    before->dependents.push_back(task);
    ++task->pending;
  }
}

void Scheduler::start(const TaskRef& task) {
  Ready ready;
  {
    std::lock_guard lock(mutex);
    release(task, ready);
  }
  execute(ready);
}

// One predecessor of the task has finished. The mutex is held.
void Scheduler::release(const TaskRef& task, Ready& ready) {
  if (--task->pending != 0) return;
  if (task->weight == Weight::light) {
    ready.own.push_back(task);
  } else if (ready.takesHeavy && !ready.heavy) {
    ready.heavy = task;
  } else if (idle > woken) {
    readyTasks.push_back(task);
    ++woken;
    work.notify_one();
  } else if ((executors < maximumExecutors && startExecutor()) || executors > 0) {
    readyTasks.push_back(task);
  } else {
    ready.own.push_back(task);  // no executor exists for it: the caller runs it
  }
}

// False if the system refuses a thread. The mutex is held.
bool Scheduler::startExecutor() try {
  std::thread([this] { executorLoop(); }).detach();
  ++executors;
  return true;
} catch (const std::exception&) {
  return false;
}

// Runs the tasks, and those that become ready for this thread meanwhile, in a loop instead of recursively.
void Scheduler::execute(Ready& ready) {
  for (size_t i = 0; i < ready.own.size(); ++i) {
    TaskRef task = std::move(ready.own[i]);
    if (runAction(task)) finish(task, ready);
  }
  ready.own.clear();
}

// False if the action must be repeated, which the clock thread does.
bool Scheduler::runAction(const TaskRef& task) {
  if (!task->action || task->domain.failed()) return true;
  Outcome outcome = Outcome::finished;
  try {
    outcome = task->action();
  } catch (const std::exception& error) {
    // Actions report their own failures to their context; an exception here is our own failure.
    std::fprintf(stderr, "vgpu emulator: internal error in device work: %s\n", error.what());
  }
  if (outcome == Outcome::finished) return true;
  std::lock_guard lock(mutex);
  waiters.push_back(task);
  clock.notify_one();
  return false;
}

// Drops the action before the task counts as done: memory that only the action keeps alive is free by then.
void Scheduler::finish(const TaskRef& task, Ready& ready) {
  task->action = nullptr;
  std::vector<TaskRef> dependents;
  {
    std::lock_guard lock(mutex);
    dependents.swap(task->dependents);
    task->completed.store(1, std::memory_order_release);
    for (const TaskRef& next : dependents) release(next, ready);
  }
  task->completed.notify_all();
}

TaskRef Scheduler::nextReady() {
  std::unique_lock lock(mutex);
  while (readyTasks.empty()) {
    ++idle;
    work.wait(lock, [&] { return woken > 0; });
    --idle;
    --woken;
  }
  TaskRef task = std::move(readyTasks.front());
  readyTasks.pop_front();
  return task;
}

void Scheduler::executorLoop() {
  TaskRef task;
  for (;;) {
    if (!task) task = nextReady();
    Ready ready;
    ready.takesHeavy = true;
    if (runAction(task)) {
      finish(task, ready);
      execute(ready);
    }
    task = std::move(ready.heavy);
  }
}

void Scheduler::startClock() { std::thread([this] { clockLoop(); }).detach(); }

std::vector<TaskRef> Scheduler::takeFinishedWaiters(std::unique_lock<std::mutex>& lock) {
  std::vector<TaskRef> asked, finished;
  asked.swap(waiters);
  lock.unlock();
  for (TaskRef& task : asked) {
    if (runAction(task)) finished.push_back(std::move(task));  // otherwise it is among the waiters again
  }
  lock.lock();
  return finished;
}

void Scheduler::clockLoop() {
  std::unique_lock lock(mutex);
  for (;;) {
    if (!waiters.empty()) {
      std::vector<TaskRef> finished = takeFinishedWaiters(lock);
      lock.unlock();
      for (const TaskRef& task : finished) {
        Ready ready;
        finish(task, ready);
        execute(ready);
      }
      lock.lock();
    }
    auto now = std::chrono::steady_clock::now();
    auto due = std::find_if(alarms.begin(), alarms.end(), [&](const Alarm& alarm) { return alarm.deadline <= now; });
    if (due != alarms.end()) {
      Alarm alarm = std::move(*due);
      alarms.erase(due);
      ringing = alarm.number;
      lock.unlock();
      alarm.expired();
      lock.lock();
      ringing = 0;
      alarmDone.notify_all();
      continue;
    }
    if (!waiters.empty()) {
      clock.wait_for(lock, pollInterval);
    } else if (!alarms.empty()) {
      auto next = std::min_element(alarms.begin(), alarms.end(),
                                   [](const Alarm& a, const Alarm& b) { return a.deadline < b.deadline; });
      Deadline deadline = next->deadline;
      clock.wait_until(lock, deadline);
    } else {
      clock.wait(lock);
    }
  }
}

uint64_t Scheduler::setAlarm(Deadline deadline, std::function<void()> expired) {
  std::lock_guard lock(mutex);
  alarms.push_back({nextAlarm, deadline, std::move(expired)});
  clock.notify_one();
  return nextAlarm++;
}

void Scheduler::cancelAlarm(uint64_t number) {
  std::unique_lock lock(mutex);
  std::erase_if(alarms, [&](const Alarm& alarm) { return alarm.number == number; });
  alarmDone.wait(lock, [&] { return ringing != number; });
}

}  // namespace vgpu::emulator::api
