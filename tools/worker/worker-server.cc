#include "tools/worker/worker-server.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "checkpoint/device-identity.h"
#include "checkpoint/explain.h"
#include "checkpoint/live-snapshot.h"
#include "checkpoint/write-out.h"
#include "stub/worker/execution.h"
#include "tools/common/descriptor.h"
#include "tools/worker/device-list.h"
#include "tools/worker/exchange-relay.h"
#include "tools/worker/live-snapshot-server.h"
#include "tools/worker/migration-source-server.h"
#include "tools/worker/pinned-relay.h"
#include "tools/worker/progress-relay.h"
#include "tools/worker/reports.h"
#include "tools/worker/shown-memory.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/wire/handover.h"
#include "vgpu/wire/segment.h"

namespace vgpu::stub {
namespace {

// A copy of the memory that a program shares: the descriptor of the message ends with the message.
struct ProgramMemory {
  kj::AutoCloseFd segment, hostArena;
};

template <typename Params>
kj::Promise<ProgramMemory> receiveMemory(Params params) {
  auto descriptors = kj::heapArrayBuilder<kj::Promise<kj::AutoCloseFd>>(2);
  descriptors.add(receiveDescriptor(params.getSegment()));
  descriptors.add(receiveDescriptor(params.getHostArena()));
  return kj::joinPromises(descriptors.finish()).then([](kj::Array<kj::AutoCloseFd>&& all) {
    return ProgramMemory{kj::mv(all[0]), kj::mv(all[1])};
  });
}

// What a caller has given, if it has.
kj::Promise<kj::AutoCloseFd> receiveSegment(control::Worker::AttachParams::Reader params) {
  if (params.hasSegment()) return receiveDescriptor(params.getSegment());
  return kj::AutoCloseFd();
}
kj::Promise<kj::AutoCloseFd> receiveTwin(control::Worker::RestoreParams::Reader params) {
  if (params.hasTwin()) return receiveDescriptor(params.getTwin());
  return kj::AutoCloseFd();
}

// stub::Worker checks the sizes of what a session shares; here only the seals are checked.
MemoryFile adopt(kj::AutoCloseFd& fd) {
  return MemoryFile::adopt(fd.release(), 1, std::numeric_limits<int64_t>::max());
}

// Or of one file the same piece.
bool isSameFile(int a, int b) {
  struct stat first, second;
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino &&
         lseek(a, 0, SEEK_CUR) == lseek(b, 0, SEEK_CUR);
}

kj::Promise<kj::Array<kj::AutoCloseFd>> receiveDescriptors(capnp::List<control::Descriptor>::Reader list) {
  auto all = kj::heapArrayBuilder<kj::Promise<kj::AutoCloseFd>>(list.size());
  for (auto descriptor : list) all.add(receiveDescriptor(descriptor));
  return kj::joinPromises(all.finish());
}

std::vector<kj::AutoCloseFd> toVector(kj::Array<kj::AutoCloseFd> array) {
  std::vector<kj::AutoCloseFd> vector;
  for (auto& fd : array) vector.push_back(kj::mv(fd));
  return vector;
}

// For which the session's calls may be held while it is asked for its device memory.
constexpr auto showLimit = std::chrono::milliseconds(50);

// Reports what is waited for, and gives up at the deadline.
class GpuWait {
 public:
  GpuWait(std::shared_ptr<ProgressRelay> relay, unsigned seconds)
      : relay(std::move(relay)), seconds(seconds), until(Clock::now() + std::chrono::seconds(seconds)) {}

  void operator()(const std::string& kernel) const {
    std::string what = kernel.empty() ? "" : " (kernel " + kernel + ")";
    if (Clock::now() >= until)
      fail(fmt::format("the program's GPU still works{} after {} s. The program goes on; a longer --timeout waits for longer", what,
                       seconds));
    relay->report(("waiting for the GPU" + what).c_str(), 0, 0);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<ProgressRelay> relay;
  unsigned seconds;
  Clock::time_point until;
};

// Of a program that has ended. Natively its work would have ended with it.
void giveUpAtOnce(const std::string& kernel) {
  fail("the GPU still works" + (kernel.empty() ? kernel : " (kernel " + kernel + ")"));
}

}  // namespace

kj::Promise<void> WorkerServer::hello(HelloContext context) {
  if (context.getParams().hasSpare() && spare == nullptr) spare = std::make_shared<SpareRelay>(context.getParams().getSpare());
  struct Found {
    std::vector<DeviceDescription> devices;
    int version = 0;
  };
  auto found = thread.run([this] {
    Found result;
    if (driver == nullptr) driver = std::make_unique<stub::Driver>(stub::Driver::load(library));
    result.devices = listDevices(*driver);
    kernelsReachProcess = std::ranges::any_of(result.devices, &DeviceDescription::readsHostMemory);
    if (worker == nullptr) {
      worker = std::make_unique<stub::Worker>(*driver, images, outputFile, fold, launches, libraryFolder);
      registerPinned();
      attachNewMemory();
      fresh = record();
    }
    stub::require(*driver, driver->cuDriverGetVersion(&result.version), "cuDriverGetVersion");
    worker->runQuiesced([&](stub::SessionState& on) {
      for (auto& device : result.devices) device.freeBytes = device.memoryBytes;  // without a context the driver does not say
      for (unsigned device : on.usedDevices()) {
        size_t total = 0;
        on.select(device);
        auto& found = result.devices[static_cast<size_t>(driver->device(device))];
        stub::require(*driver, driver->cuMemGetInfo_v2(&found.freeBytes, &total), "cuMemGetInfo");
      }
      on.select(0);
    });
    return result;
  });
  return found.then([context](Found&& result) mutable {
    auto results = context.getResults();
    results.setDriverVersion(result.version);
    auto list = results.initDevices(result.devices.size());
    for (size_t i = 0; i < result.devices.size(); ++i) {
      list[i].setOrdinal(result.devices[i].ordinal);
      list[i].setName(result.devices[i].name.c_str());
      list[i].setUuid(result.devices[i].uuid.c_str());
      list[i].setMemoryBytes(result.devices[i].memoryBytes);
      list[i].setReadsHostMemory(result.devices[i].readsHostMemory);
      list[i].setFreeBytes(result.devices[i].freeBytes);
    }
  });
}

// Registering it takes the driver tens of milliseconds: better now than when a program waits.
void WorkerServer::attachNewMemory() {
  offerRoom();
  worker->attach(Segment::create(), MemoryFile::create("vgpu-host-arena", hostArenaBytes));
}

void WorkerServer::offerRoom() {
  if (spare != nullptr)
    worker->runQuiesced([&](stub::SessionState& on) { on.makeRoom = [spare = spare] { return spare->free(); }; });
}

// Before the worker is handed out, for the same reason: 51 ms a GiB.
void WorkerServer::registerPinned() {
  if (pinnedFile.bytes() == 0) return;
  worker->runQuiesced([&](stub::SessionState& on) {
    on.select(0);
    pinnedContext.emplace(*driver, 0);
    stub::require(*driver, pinnedContext->take(), "keeping a context");
    pinned = std::make_unique<checkpoint::PinnedMemory>(*driver, pinnedFile);
  });
}

ProcessRecord WorkerServer::record() {
  ProcessRecord taken;
  worker->runQuiesced([&](stub::SessionState& on) {
    taken = ProcessRecord::take(*driver, on.usedDevices(), [&](unsigned device) { on.select(device); });
    on.select(0);
  });
  return taken;
}

stub::Worker& WorkerServer::running() {
  if (worker == nullptr) fail("a worker must be greeted before it can work");
  return *worker;
}

kj::Promise<void> WorkerServer::attach(AttachContext context) {
  auto exchange = std::make_shared<ExchangeRelay>(context.getParams().getExchange());
  std::vector<CUdevice> devices;
  for (uint32_t device : context.getParams().getDevices()) devices.push_back(static_cast<CUdevice>(device));
  return receiveSegment(context.getParams())
      .then([this, exchange, devices](kj::AutoCloseFd&& segment) {
        return thread.run([this, exchange, devices, segment = kj::mv(segment)]() mutable {
          if (!devices.empty() && useDevices(devices) && segment.get() < 0) attachNewMemory();
          running().shareBy(exchange);
          if (segment.get() >= 0)
            running().attach(adoptSegment(segment.release()), MemoryFile::create("vgpu-host-arena", hostArenaBytes));
          running().proceed();
          return running().sharedFiles();
        });
      })
      .then([context](stub::SharedFiles files) mutable {
        auto results = context.getResults();
        results.setSegment(kj::heap<PassedDescriptor>(duplicate(files.segment)));
        results.setHostArena(kj::heap<PassedDescriptor>(duplicate(files.hostArena)));
      });
}

kj::Promise<void> WorkerServer::quiesce(QuiesceContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  auto relay = std::make_shared<ProgressRelay>(params.getProgress());
  unsigned seconds = params.getTimeoutSeconds();
  auto quiesced = thread.run([this, relay, seconds] { return running().quiesce(GpuWait(relay, seconds)); });
  return cancelOnDrop(quiesced.then([context](uint64_t position) mutable {
    faultPoint("suspend.quiesced");
    context.getResults().setPosition(position);
  }),
                      relay);
}

kj::Promise<void> WorkerServer::proceed(ProceedContext context) {
  return thread
      .run([this, handover = context.getParams().getHandover()] {
        if (handover == 0) {
          running().proceed();
        } else {
          claim(handover);
        }
        return Done{};
      })
      .ignoreResult();
}

// The point of no return of a resume (vgpu/wire/handover.h).
void WorkerServer::claim(uint64_t handover) {
  if (!restored) fail("there is no restored session to go on with");
  if (!isMemoryChecked) checkpoint::requireMemory(running(), *restored);
  running().runQuiesced([&](stub::SessionState& on) {
    if (!claimHandover(on.shared().header().handover, handover)) fail("the program has withdrawn from its resume");
  });
  checkpoint::proceed(running(), *std::exchange(restored, std::nullopt));
  faultPoint("resume.proceeded");
}

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

// A session's devices are made in their order, so those of another order are made anew: a few ten milliseconds. False if they are
// what they were; else the memory that was made ready has gone.
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
    Mapping memory(pinnedFile);  // without a driver it is memory like any other
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

kj::Promise<void> WorkerServer::explain(ExplainContext context) {
  return thread.run([this] { return checkpoint::explain(running()); }).then([context](checkpoint::Explanation&& found) mutable {
    auto results = context.getResults();
    results.setDeviceBytes(found.deviceBytes);
    auto list = results.initObstacles(static_cast<unsigned>(found.obstacles.size()));
    for (unsigned i = 0; i < found.obstacles.size(); ++i) {
      list[i].setRefuses(found.obstacles[i].refuses);
      list[i].setObject(found.obstacles[i].object.c_str());
      list[i].setWhy(found.obstacles[i].why.c_str());
    }
  });
}

kj::Promise<void> WorkerServer::release(ReleaseContext) {
  return thread
      .run([this] {
        if (kernelsReachProcess) fail("kernels on its device can write all of its memory");
        if (!driver->order.empty()) fail("its session had other devices than a new one gets");
        running().release();
        isReleased = true;
        return Done{};
      })
      .ignoreResult();
}

kj::Promise<void> WorkerServer::reclaim(ReclaimContext context) {
  auto params = context.getParams();
  std::string directory = textOf(params.getDirectory());
  auto report = receiveMemory(params).then([this, directory](ProgramMemory&& memory) {
    return thread.run([this, directory, memory = kj::mv(memory)] {
      auto own = running().sharedFiles();
      if (!isSameFile(own.segment, memory.segment) || !isSameFile(own.hostArena, memory.hostArena))
        fail("the program's memory is not the one that the worker has");
      restored = checkpoint::reclaim(running(), directory);
      isMemoryChecked = true;
      return restored->report;
    });
  });
  return report.then([context](checkpoint::Report&& report) mutable { give(report, context.getResults().initReport()); });
}

kj::Promise<void> WorkerServer::recycle(RecycleContext) {
  return thread
      .run([this] {
        if (kernelsReachProcess) fail("kernels on its device can write all of its memory");
        if (!driver->order.empty()) fail("its session had other devices than a new one gets");
        if (!std::exchange(isReleased, false)) running().quiesce(giveUpAtOnce);
        running().recycle();
        attachNewMemory();
        if (images.counters != nullptr) images.counters->clear();
        if (launches != nullptr) launches->clear();
        std::string left = record().leftSince(fresh);
        if (!left.empty()) fail("its session has left " + left);
        return Done{};
      })
      .ignoreResult();
}

}  // namespace vgpu::stub
