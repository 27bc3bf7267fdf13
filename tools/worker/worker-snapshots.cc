// The calls of a worker that save, send, restore and show a session.
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "checkpoint/live-snapshot.h"
#include "checkpoint/write-out.h"
#include "stub/worker/execution.h"
#include "tools/worker/device-list.h"
#include "tools/worker/exchange-relay.h"
#include "tools/worker/live-snapshot-server.h"
#include "tools/worker/migration-source-server.h"
#include "tools/worker/pinned-relay.h"
#include "tools/worker/progress-relay.h"
#include "tools/worker/received.h"
#include "tools/worker/reports.h"
#include "tools/worker/shown-memory.h"
#include "tools/worker/worker-server.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"

namespace vgpu::stub {
namespace {

// The twin's socket that the caller has passed, if it has.
kj::Promise<kj::AutoCloseFd> receiveTwin(control::Worker::RestoreParams::Reader params) {
  if (params.hasTwin()) return receiveDescriptor(params.getTwin());
  return kj::AutoCloseFd();
}

// How long the session's calls may be held while its device memory is listed.
constexpr auto showLimit = std::chrono::milliseconds(50);

}  // namespace

kj::Promise<void> WorkerServer::save(SaveContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  auto relay = std::make_shared<ProgressRelay>(params.getProgress());
  auto room = PinnedRelay::of(params);
  auto target = receiveDescriptor(params.getTarget());
  auto saved =
      target.then([this, relay, room, pool = textOf(params.getPool()), directory = textOf(params.getDirectory()),
                   objects = textOf(params.getObjects()), identity = identityOf(params.getSession(), params.getReattach()),
                   owned = namesIn(params.getOwned())](kj::AutoCloseFd&& fd) {
        return thread.run([this, relay, room, pool, directory, objects, identity, owned, fd = kj::mv(fd)]() mutable {
          relay->report("starting", 0, 0);  // it may have been cancelled while it waited for its turn
          running().runQuiesced([&](stub::SessionState& on) { on.sharedNames.own(owned); });
          snapshot::SnapshotWriter writer(kj::mv(fd), directory);
          auto pinnedRoom = roomIn(pinnedBytes(), room, pool);
          return checkpoint::save(running(), writer, objects, identity, progressTo(relay), pinnedRoom ? &*pinnedRoom : nullptr);
        });
      });
  return cancelOnDrop(
      saved.then([context](checkpoint::Report&& report) mutable { give(report, context.getResults().initReport()); }),
      relay).attach(kj::defer([room] { if (room) room->close(); }));
}

kj::Promise<void> WorkerServer::restore(RestoreContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  auto relay = std::make_shared<ProgressRelay>(params.getProgress());
  auto room = PinnedRelay::of(params);
  auto exchange = std::make_shared<ExchangeRelay>(params.getExchange());
  std::string directory = textOf(params.getDirectory());
  std::vector<uint32_t> devices;
  for (uint32_t device : params.getDevices()) devices.push_back(device);
  const bool memoryLater = params.getMemoryLater();
  auto twin = receiveTwin(params);
  auto memory = receiveMemory(params).then([twin = kj::mv(twin)](ProgramMemory&& memory) mutable {
    return twin.then(
        [memory = kj::mv(memory)](kj::AutoCloseFd&& socket) mutable { return std::pair(kj::mv(memory), kj::mv(socket)); });
  });
  auto report = memory.then([this, relay, room, exchange, directory, devices, memoryLater](auto&& received) {
    return thread.run([this, relay, room, exchange, directory, devices, memoryLater, received = kj::mv(received)]() mutable {
      auto& [memory, twin] = received;
      useDevices(checkpoint::chooseDevices(snapshot::SnapshotReader(directory), devices, checkpoint::uuidsOf(*driver)));
      running().shareBy(exchange);
      running().attach(adoptSegment(memory.segment.release()), adopt(memory.hostArena));
      faultPoint("resume.memory-attached");
      auto pinnedRoom = roomIn(pinnedBytes(), room, "");
      checkpoint::RestoreFrom from{.room = pinnedRoom ? &*pinnedRoom : nullptr,
                                   .ahead = ahead ? &ahead->finish() : nullptr,
                                   .memoryLater = memoryLater};
      std::vector<checkpoint::TwinMemory> shown;
      if (twin >= 0) {
        shown = receiveShown(kj::mv(twin));
        from.twin = &shown;
      }
      restored = checkpoint::restore(running(), directory, progressTo(relay), from);
      isMemoryChecked = !memoryLater;
      ahead.reset();
      return restored->report;
    });
  });
  return cancelOnDrop(report.then([context](checkpoint::Report&& report) mutable {
    give(report, context.getResults().initReport());
  }),
                      relay).attach(kj::defer([room] { if (room) room->close(); }));
}

// A session's devices are made in order, so devices in another order must be made anew, which takes a few tens of milliseconds. Returns
// false if they are unchanged; otherwise the prepared memory is gone.
bool WorkerServer::useDevices(const std::vector<CUdevice>& order) {
  int count = 0;
  stub::require(*driver, driver->cuDeviceGetCount(&count), "cuDeviceGetCount");
  bool isAsItIs = order.size() == static_cast<size_t>(count);
  for (unsigned device = 0; device < order.size(); ++device) isAsItIs &= order[device] == static_cast<CUdevice>(device);
  if (isAsItIs) return false;
  running().release();
  driver->order = order;
  running().recycle();
  offerRoom();
  return true;
}

kj::Promise<void> WorkerServer::write(WriteContext context) {
  auto params = context.getParams();
  auto room = PinnedRelay::of(params);
  auto written = thread.run([this, room, directory = textOf(params.getDirectory())] {
    Mapping memory(pinnedFile);  // without a driver: ordinary memory
    auto inMemory = roomIn({memory.data(), memory.bytes()}, room, "");
    if (!inMemory) fail("this worker has no pinned memory");
    return checkpoint::writeOut(directory, *inMemory);
  });
  return written.then([context](checkpoint::Report&& report) mutable { give(report, context.getResults().initReport()); })
      .attach(kj::defer([room] { if (room) room->close(); }));
}

kj::Promise<void> WorkerServer::beginSnapshot(BeginSnapshotContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  auto relay = std::make_shared<ProgressRelay>(params.getProgress());
  auto target = receiveDescriptor(params.getTarget());
  auto begun = target.then([this, relay, directory = textOf(params.getDirectory())](kj::AutoCloseFd&& fd) {
    return thread.run([this, relay, directory, fd = kj::mv(fd)]() mutable {
      relay->report("starting", 0, 0);  // it may have been cancelled while it waited for its turn
      auto writer = std::make_unique<snapshot::SnapshotWriter>(kj::mv(fd), directory);
      auto snapshot = std::make_shared<checkpoint::LiveSnapshot>(*driver, running(), std::move(writer));
      snapshot->runRounds(progressTo(relay));
      return snapshot;
    });
  });
  return cancelOnDrop(begun.then([this, context](std::shared_ptr<checkpoint::LiveSnapshot>&& snapshot) mutable {
    context.getResults().setSnapshot(kj::heap<LiveSnapshotServer>(thread, std::move(snapshot), pinnedBytes()));
  }),
                      relay);
}

kj::Promise<void> WorkerServer::sendAhead(SendAheadContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  auto relay = std::make_shared<ProgressRelay>(params.getProgress());
  auto target = receiveDescriptor(params.getTarget());
  auto streams = receiveDescriptors(params.getStreams());
  auto sent = target.then([this, relay, directory = textOf(params.getDirectory()), objects = textOf(params.getObjects()),
                           downtime = params.getDowntimeSeconds(), streams = kj::mv(streams)](kj::AutoCloseFd&& fd) mutable {
    return streams.then([this, relay, directory, objects, downtime, fd = kj::mv(fd)](kj::Array<kj::AutoCloseFd>&& sockets) mutable {
      return thread.run([this, relay, directory, objects, downtime, fd = kj::mv(fd), sockets = kj::mv(sockets)]() mutable {
        relay->report("starting", 0, 0);  // it may have been cancelled while it waited for its turn
        auto writer = std::make_unique<snapshot::SnapshotWriter>(kj::mv(fd), directory, snapshot::Durability::unsynced);
        auto source = std::make_shared<migrate::PreCopySource>(*driver, running(), toVector(kj::mv(sockets)), std::move(writer),
                                                               objects);
        source->runRounds(downtime, progressTo(relay));
        return source;
      });
    });
  });
  return cancelOnDrop(sent.then([this, context](std::shared_ptr<migrate::PreCopySource>&& source) mutable {
    context.getResults().setSource(kj::heap<MigrationSourceServer>(thread, std::move(source)));
  }),
                      relay);
}

kj::Promise<void> WorkerServer::takeAhead(TakeAheadContext context) {
  return receiveDescriptors(context.getParams().getStreams()).then([this](kj::Array<kj::AutoCloseFd>&& sockets) {
    return thread
        .run([this, sockets = kj::mv(sockets)]() mutable {
          ahead = std::make_unique<migrate::PreCopyTarget>(*driver, running(), toVector(kj::mv(sockets)));
          return Done{};
        })
        .ignoreResult();
  });
}

kj::Promise<void> WorkerServer::showMemory(ShowMemoryContext context) {
  return receiveDescriptor(context.getParams().getTo()).then([this](kj::AutoCloseFd&& socket) {
    return thread
        .run([this, socket = kj::mv(socket)]() mutable {
          std::vector<checkpoint::TwinMemory> shown;
          running().interlude(false, showLimit, [&](stub::SessionState& on) { shown = checkpoint::showMemory(on); });
          sendShown(kj::mv(socket), shown);
          return Done{};
        })
        .ignoreResult();
  });
}

}  // namespace vgpu::stub
