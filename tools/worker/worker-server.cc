#include "tools/worker/worker-server.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "checkpoint/device-identity.h"
#include "checkpoint/explain.h"
#include "tools/worker/device-list.h"
#include "tools/worker/exchange-relay.h"
#include "tools/worker/pinned-relay.h"
#include "tools/worker/progress-relay.h"
#include "tools/worker/received.h"
#include "tools/worker/reports.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/wire/handover.h"
#include "vgpu/wire/segment.h"

namespace vgpu::stub {
namespace {

// The segment that the caller has passed, if it has.
kj::Promise<kj::AutoCloseFd> receiveSegment(control::Worker::AttachParams::Reader params) {
  if (params.hasSegment()) return receiveDescriptor(params.getSegment());
  return kj::AutoCloseFd();
}

// Or the same piece of one file.
bool isSameFile(int a, int b) {
  struct stat first, second;
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino &&
         lseek(a, 0, SEEK_CUR) == lseek(b, 0, SEEK_CUR);
}

// Reports what is waited for, and gives up at the deadline.
class GpuWait {
 public:
  GpuWait(std::shared_ptr<ProgressRelay> relay, unsigned seconds)
      : relay(std::move(relay)), seconds(seconds), until(Clock::now() + std::chrono::seconds(seconds)) {}

  void operator()(const std::string& kernel) const {
    std::string what = kernel.empty() ? "" : " (kernel " + kernel + ")";
    if (Clock::now() >= until)
      fail(fmt::format("the program's GPU is still busy{} after {} s. The program goes on; give a longer --timeout to wait longer", what,
                       seconds));
    relay->report(("waiting for the GPU" + what).c_str(), 0, 0);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<ProgressRelay> relay;
  unsigned seconds;
  Clock::time_point until;
};

// For a program that has ended: natively its work would have ended with it.
void giveUpAtOnce(const std::string& kernel) {
  fail("the GPU is still busy" + (kernel.empty() ? kernel : " (kernel " + kernel + ")"));
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
      for (auto& device : result.devices) device.freeBytes = device.memoryBytes;  // the driver does not report it without a context
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

// Registering the memory takes the driver tens of milliseconds, so it is done before a program waits.
void WorkerServer::attachNewMemory() {
  offerRoom();
  worker->attach(Segment::create(), MemoryFile::create("vgpu-host-arena", hostArenaBytes));
}

void WorkerServer::offerRoom() {
  if (spare != nullptr)
    worker->runQuiesced([&](stub::SessionState& on) { on.makeRoom = [spare = spare] { return spare->free(); }; });
}

// Before the worker is handed out, for the same reason: 51 ms per GiB.
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
  if (worker == nullptr) fail("the worker was called before its `hello`");
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
  if (!restored) fail("there is no restored session to claim");
  if (!isMemoryChecked) checkpoint::requireMemory(running(), *restored);
  running().runQuiesced([&](stub::SessionState& on) {
    if (!claimHandover(on.shared().header().handover, handover)) fail("the program has cancelled its resume");
  });
  checkpoint::proceed(running(), *std::exchange(restored, std::nullopt));
  faultPoint("resume.proceeded");
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
        if (kernelsReachProcess) fail("kernels on its device can write all memory of the process");
        if (!driver->order.empty()) fail("its session used a selection of the node's devices");
        running().release();
        isReleased = true;
        return Done{};
      })
      .ignoreResult();
}

kj::Promise<void> WorkerServer::reclaim(ReclaimContext context) {
  auto params = context.getParams();
  std::string directory = textOf(params.getDirectory());
  auto exchange = std::make_shared<ExchangeRelay>(params.getExchange());
  auto report = receiveMemory(params).then([this, directory, exchange](ProgramMemory&& memory) {
    return thread.run([this, directory, exchange, memory = kj::mv(memory)] {
      auto own = running().sharedFiles();
      if (!isSameFile(own.segment, memory.segment) || !isSameFile(own.hostArena, memory.hostArena))
        fail("the program's memory is not the memory that the worker has attached");
      running().shareBy(exchange);
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
        if (kernelsReachProcess) fail("kernels on its device can write all memory of the process");
        if (!driver->order.empty()) fail("its session used a selection of the node's devices");
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
