#include "stub/emulator/stream/stream.h"

#include <algorithm>
#include <atomic>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/graph-node.h"

namespace vgpu::emulator::api {
namespace {

std::atomic<uint64_t> nextStreamId{1};

}  // namespace

thread_local bool PerThreadDefault::isActive = false;

Stream::Stream(Context& owner, Kind kind, unsigned flags, int priority)
    : context(owner), kind(kind), flags(flags), priority(priority), id(nextStreamId++) {}

namespace {

// Those that exist.
std::vector<std::shared_ptr<Context>> primaryContextsOf(Driver& driver, uint64_t devices) {
  std::vector<std::shared_ptr<Context>> contexts;
  std::lock_guard lock(driver.lifeMutex);
  for (int ordinal = 0; ordinal < driver.deviceCount(); ++ordinal) {
    Device& device = driver.device(ordinal);
    const std::shared_ptr<Context>& context = driver.primary(device).context;
    if ((devices & device.bit()) != 0 && context) contexts.push_back(context);
  }
  return contexts;
}

}  // namespace

// A copy between devices in the default stream runs after all earlier work of both devices, and before all their later work (CUDA C++
// Programming Guide, "Peer-to-Peer Memory Copy").
TaskRef Stream::submit(Operation operation, std::span<const TaskRef> after) {
  const uint64_t others = kind == Kind::legacy ? operation.devices & ~context.device.bit() : 0;
  if (others == 0) return context.streams.submit(*this, std::move(operation), after);
  std::vector<TaskRef> before(after.begin(), after.end());
  const auto contexts = primaryContextsOf(context.driver, others);
  for (const std::shared_ptr<Context>& each : contexts)
    for (TaskRef& task : each->streams.pending(*each->streams.resolve(CU_STREAM_LEGACY))) before.push_back(std::move(task));
  TaskRef copy = context.streams.submit(*this, std::move(operation), before);
  for (const std::shared_ptr<Context>& each : contexts)
    each->streams.resolve(CU_STREAM_LEGACY)->submit({.weight = Weight::light}, {&copy, 1});
  return copy;
}

void Stream::run(Operation operation) {
  refuseCapturing();
  submit(std::move(operation))->wait();
  context.flushOutput();
  context.check();
}

bool Stream::idle() {
  refuseCapturing();
  return context.streams.pending(*this).empty();
}

void Stream::wait() {
  refuseCapturing();
  for (const TaskRef& task : context.streams.pending(*this)) task->wait();
}

StreamSet::StreamSet(Context& context, Scheduler& scheduler)
    : context(context),
      scheduler(scheduler),
      legacy(std::make_shared<Stream>(context, Stream::Kind::legacy, CU_STREAM_DEFAULT, 0)) {}

std::shared_ptr<Stream> StreamSet::resolve(CUstream handle) {
  if (handle == nullptr) handle = PerThreadDefault::active() ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle == CU_STREAM_LEGACY) return legacy;
  if (handle != CU_STREAM_PER_THREAD) return context.driver.streams.get(handle);
  std::lock_guard lock(mutex);
  std::shared_ptr<Stream>& mine = perThread[std::this_thread::get_id()];
  if (!mine) mine = std::make_shared<Stream>(context, Stream::Kind::perThread, CU_STREAM_DEFAULT, 0);
  return mine;
}

std::shared_ptr<Stream> StreamSet::create(unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>(context, Stream::Kind::created, flags, priority);
  std::lock_guard lock(mutex);
  std::erase_if(created, [](const std::weak_ptr<Stream>& gone) { return gone.expired(); });
  created.push_back(stream);
  return stream;
}

void StreamSet::forget(const Stream& stream) {
  std::lock_guard lock(mutex);
  std::erase_if(created, [&](const std::weak_ptr<Stream>& each) { return each.lock().get() == &stream; });
  std::erase_if(orphans, [](const auto& orphan) { return orphan.second->done(); });
  if (stream.tail && !stream.tail->done()) orphans.emplace_back(stream.blocking(), stream.tail);
}

// The mutex is held.
void StreamSet::collectPredecessors(const Stream& stream, std::vector<TaskRef>& before) {
  auto add = [&](const TaskRef& task) {
    if (task && !task->done()) before.push_back(task);
  };
  add(stream.tail);
  if (!stream.blocking()) return;
  if (stream.kind != Stream::Kind::legacy) return add(legacy->tail);
  for (const auto& [thread, each] : perThread) add(each->tail);
  for (const std::weak_ptr<Stream>& weak : created) {
    std::shared_ptr<Stream> each = weak.lock();
    if (each && each->blocking()) add(each->tail);
  }
  for (const auto& [blocking, task] : orphans) {
    if (blocking) add(task);
  }
}

TaskRef StreamSet::submit(Stream& stream, Operation operation, std::span<const TaskRef> after) {
  TaskRef task;
  {
    std::lock_guard lock(mutex);
    if (stream.capture) {
      recordOperation(stream, std::move(operation), nullptr, nullptr);
      return nullptr;
    }
    refuseImplicit(stream);
    const Domain& domain = operation.always ? unfailing() : context;
    task = std::make_shared<Task>(domain, operation.weight, std::move(operation.action));
    std::vector<TaskRef> before(after.begin(), after.end());
    collectPredecessors(stream, before);
    scheduler.tie(task, before);
    stream.tail = task;
  }
  scheduler.start(task);
  return task;
}

TaskRef StreamSet::submitGroup(Stream& stream, std::vector<GroupMember> members, TaskRef previous, const Graph& child,
                               const TaskRef& complete) {
  std::vector<TaskRef> tasks;
  {
    std::lock_guard lock(mutex);
    if (stream.capture) {
      std::shared_ptr<Graph> copy;
      {
        std::lock_guard graphs(context.driver.graphMutex);
        copy = child.clone();
      }
      recordOperation(stream, {.weight = Weight::light, .type = CU_GRAPH_NODE_TYPE_GRAPH}, nullptr, std::move(copy));
      return previous;
    }
    refuseImplicit(stream);
    std::vector<TaskRef> entry{std::move(previous)};
    collectPredecessors(stream, entry);
    auto end = std::make_shared<Task>(context, Weight::light, Action{});
    for (GroupMember& member : members) {
      const Domain& domain = member.always ? unfailing() : context;
      auto task = std::make_shared<Task>(domain, member.operation.weight, std::move(member.operation.action));
      std::vector<TaskRef> before = member.before.empty() ? entry : std::vector<TaskRef>{};
      for (size_t each : member.before) before.push_back(tasks[each]);
      if (member.after) before.push_back(member.after);
      scheduler.tie(task, before);
      if (member.event) member.event->replace(member.recorded, task);
      tasks.push_back(std::move(task));
    }
    scheduler.tie(end, entry);
    scheduler.tie(end, tasks);
    scheduler.tie(end, std::span(&complete, 1));
    tasks.push_back(end);
    stream.tail = end;
  }
  for (const TaskRef& task : tasks) scheduler.start(task);
  return tasks.back();
}

std::vector<TaskRef> StreamSet::pending(const Stream& stream) {
  std::lock_guard lock(mutex);
  std::vector<TaskRef> before;
  collectPredecessors(stream, before);
  // The dependency of later work on the default stream is not part of the stream itself.
  if (stream.kind != Stream::Kind::legacy)
    std::erase_if(before, [&](const TaskRef& task) { return task != stream.tail; });
  return before;
}

// The mutex is held.
std::vector<TaskRef> StreamSet::tails() {
  std::vector<TaskRef> all{legacy->tail};
  for (const auto& [thread, each] : perThread) all.push_back(each->tail);
  for (const std::weak_ptr<Stream>& weak : created) {
    if (std::shared_ptr<Stream> each = weak.lock()) all.push_back(each->tail);
  }
  for (const auto& [blocking, task] : orphans) all.push_back(task);
  std::erase_if(all, [](const TaskRef& task) { return !task || task->done(); });
  return all;
}

void StreamSet::share(TaskRef work) {
  std::lock_guard lock(mutex);
  std::erase_if(orphans, [](const auto& orphan) { return orphan.second->done(); });
  orphans.emplace_back(false, std::move(work));
}

void StreamSet::afterAll(Action action) {
  auto task = std::make_shared<Task>(context, Weight::light, std::move(action));
  {
    std::lock_guard lock(mutex);
    scheduler.tie(task, tails());
    std::erase_if(orphans, [](const auto& orphan) { return orphan.second->done(); });
    orphans.emplace_back(false, task);  // so that the context does not end before the task
  }
  scheduler.start(task);
}

void StreamSet::waitForAll() {
  std::vector<TaskRef> all;
  {
    std::lock_guard lock(mutex);
    all = tails();
  }
  for (const TaskRef& task : all) task->wait();
}

std::shared_ptr<Stream> streamOf(Context& current, CUstream handle) {
  std::shared_ptr<Stream> stream = current.streams.resolve(handle);
  if (&stream->context != &current) stream->context.check();
  if (stream->green && !stream->green->alive) refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return stream;
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* handle, unsigned flags, int priority) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) == 0);
    std::shared_ptr<Stream> stream =
        context.streams.create(flags, std::clamp(priority, greatestPriority, leastPriority));
    *handle = context.driver.streams.add(stream);
  });
}

CUresult CUDAAPI cuStreamCreate(CUstream* handle, unsigned flags) {
  return cuStreamCreateWithPriority(handle, flags, leastPriority);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream handle) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<Stream> stream = driver.streams.get(handle);
    if (stream->green && !stream->green->alive) refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    driver.streams.remove(handle);
    stream->context.streams.forget(*stream);
  });
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    stream->wait();
    stream->context.flushOutput();
    stream->context.check();
  });
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    if (!stream->idle()) return CUDA_ERROR_NOT_READY;
    stream->context.check();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned* flags) {
  return enterContext([&](Context& context) {
    require(flags != nullptr);
    *flags = streamOf(context, handle)->flags;
  });
}

CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int* priority) {
  return enterContext([&](Context& context) {
    require(priority != nullptr);
    *priority = streamOf(context, handle)->priority;
  });
}

CUresult CUDAAPI cuStreamGetId(CUstream handle, unsigned long long* id) {
  return enterContext([&](Context& context) {
    require(id != nullptr);
    *id = streamOf(context, handle)->id;
  });
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* owner) {
  return enterContext([&](Context& context) {
    require(owner != nullptr);
    *owner = streamOf(context, handle)->context.handle;
  });
}

CUresult CUDAAPI cuStreamGetCtx_v2(CUstream handle, CUcontext* owner, CUgreenCtx* green) {
  if (CUresult refused = green == nullptr ? CUDA_SUCCESS : cuStreamGetGreenCtx(handle, green)) return refused;
  return cuStreamGetCtx(handle, owner);
}

CUresult CUDAAPI cuStreamGetDevice(CUstream handle, CUdevice* device) {
  return enterContext([&](Context& context) {
    require(device != nullptr);
    *device = streamOf(context, handle)->context.device.ordinal();
  });
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  return enterContext([&](Context& context) { streamOf(context, handle)->submit(makeHost({function, data})); });
}

CUresult CUDAAPI cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags) {
  return enterContext([&](Context& context) {
    require(callback != nullptr && flags == 0);
    auto stream = streamOf(context, handle);
    auto call = [callback, handle, data, &of = stream->context] { return callback(handle, of.failure(), data), Outcome::finished; };
    stream->submit({.action = call, .always = true});
  });
}

CUresult CUDAAPI cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t, unsigned flags) {
  return enterContext([&](Context& context) {
    require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE);
    std::optional<Mapping> mapping = context.driver.space.find(address);
    require(mapping && mapping->kind == MappingKind::managed);
    streamOf(context, handle);  // managed memory is the same memory for host and device here: nothing is moved
  });
}
