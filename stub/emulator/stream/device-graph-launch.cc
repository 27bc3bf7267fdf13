#include "stub/emulator/stream/device-graph-launch.h"

#include <chrono>
#include <cstdio>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/replaced.h"

namespace vgpu::emulator::api {
namespace {

// CUDA Programming Guide: the most fire-and-forget launches during a graph's execution, and the most pending tail launches.
constexpr unsigned mostBeside = 120;
constexpr size_t mostTails = 255;

}  // namespace

struct GraphEnvironment::Root {
  Root(Context& context, TaskRef complete) : context(context), complete(std::move(complete)) {}
  Context& context;  // of the stream into which the host launched
  const TaskRef complete;
  std::chrono::steady_clock::time_point begun;
  std::mutex mutex;
};

thread_local GraphEnvironment* GraphEnvironment::ofThread = nullptr;

std::shared_ptr<GraphEnvironment> GraphEnvironment::ofHost(std::shared_ptr<GraphExec> graph, Context& context, TaskRef complete) {
  auto root = std::make_shared<Root>(context, std::move(complete));
  auto stream = std::make_shared<GraphEnvironment>(root, nullptr, nullptr);
  return std::make_shared<GraphEnvironment>(root, stream, std::move(graph));
}

uint64_t GraphEnvironment::handle() const { return graph->isForKernels() ? asNumber(graph->handle) : 0; }

Action GraphEnvironment::inside(Action action) {
  return [self = shared_from_this(), action = std::move(action)] {
    const Replaced here(ofThread, self.get());
    return action();
  };
}

void GraphEnvironment::begin() {
  root->begun = std::chrono::steady_clock::now();
  graph->running.fetch_add(1);
}

DeviceGraphs::Answer GraphEnvironment::launch(std::shared_ptr<GraphExec> other, GraphStream stream) {
  if (!other->uploadedSteps() || isLate()) return DeviceGraphs::Answer::refused;
  std::shared_ptr<GraphEnvironment> made;
  {
    std::lock_guard lock(root->mutex);
    int none = 0;
    if (stream == GraphStream::tail) {
      const bool isOwn = other == graph;
      if (tails.size() >= mostTails || (isOwn && itself)) return DeviceGraphs::Answer::refused;
      if (isOwn) other->running.fetch_add(1);
      else if (!other->running.compare_exchange_strong(none, 1)) return DeviceGraphs::Answer::refused;
      itself |= isOwn;
      tails.push_back(std::move(other));
      return DeviceGraphs::Answer::done;
    }
    unsigned& so = stream == GraphStream::sibling ? siblings : launched;
    if (so >= mostBeside) return DeviceGraphs::Answer::refused;
    if (!other->running.compare_exchange_strong(none, 1)) return DeviceGraphs::Answer::refused;
    ++so;
    std::shared_ptr<GraphEnvironment> outer = stream == GraphStream::sibling ? around : shared_from_this();
    ++outer->open;
    made = std::make_shared<GraphEnvironment>(root, std::move(outer), std::move(other));
  }
  made->run();
  return DeviceGraphs::Answer::done;
}

// Whether the host's launch has run for longer than `timeout`: graphs that keep launching graphs have no single kernel that runs too long.
bool GraphEnvironment::isLate() {
  const double seconds = root->context.driver.settings.timeoutSeconds;
  if (seconds <= 0 || std::chrono::steady_clock::now() - root->begun < std::chrono::duration<double>(seconds)) return false;
  std::fprintf(stderr, "vgpu emulator: a launch of a graph and of graphs that its kernels launched: cancelled\n");
  root->context.fail(CUDA_ERROR_LAUNCH_TIMEOUT);
  return true;
}

// The environment of the next graph that takes the place of this complete one; nullptr if there is none. The root's mutex is held.
std::shared_ptr<GraphEnvironment> GraphEnvironment::takePlace() {
  graph->running.fetch_sub(1);
  tails.insert(tails.end(), behind.begin(), behind.end());
  if (tails.empty()) return nullptr;
  auto next = std::make_shared<GraphEnvironment>(root, around, std::move(tails.front()));
  tails.pop_front();
  next->behind = std::move(tails);
  return next;
}

void GraphEnvironment::end() {
  std::shared_ptr<GraphEnvironment> next;
  bool isComplete = false;
  {
    std::lock_guard lock(root->mutex);
    for (std::shared_ptr<GraphEnvironment> each = shared_from_this(); each && --each->open == 0; each = each->around) {
      if (!each->around) isComplete = true;
      else if ((next = each->takePlace())) break;
    }
  }
  if (next) next->run();
  if (isComplete) root->context.driver.scheduler.start(root->complete);
}

// Starts the steps of the latest upload as the graph's own work.
void GraphEnvironment::run() {
  Scheduler& scheduler = root->context.driver.scheduler;
  const std::shared_ptr<const std::vector<GraphExec::Step>> steps = graph->uploadedSteps();
  const Domain& domain = graph->context ? *graph->context : root->context;
  std::vector<TaskRef> tasks;
  for (const GraphExec::Step& step : *steps) {
    Action action = step.runs() ? step.operation.action : Action{};
    if (action && step.operation.type == CU_GRAPH_NODE_TYPE_KERNEL) action = inside(std::move(action));
    auto task = std::make_shared<Task>(domain, step.operation.weight, std::move(action));
    std::vector<TaskRef> before;
    for (size_t each : step.before) before.push_back(tasks[each]);
    scheduler.tie(task, before);
    tasks.push_back(std::move(task));
  }
  // Runs on a thread of the scheduler, and not on the one that has run the last step: see above.
  auto last = std::make_shared<Task>(unfailing(), Weight::heavy, [self = shared_from_this()] {
    self->end();
    return Outcome::finished;
  });
  scheduler.tie(last, tasks);
  tasks.push_back(std::move(last));
  for (const TaskRef& task : tasks) scheduler.start(task);
}

}  // namespace vgpu::emulator::api
