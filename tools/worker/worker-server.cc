#include "tools/worker/worker-server.h"

#include <kj/debug.h>

#include <limits>

#include "tools/common/descriptor.h"
#include "tools/worker/device-list.h"
#include "tools/worker/progress-relay.h"
#include "vgpu/wire/fault-point.h"
#include "vgpu/wire/segment.h"
#include "vgpu/wire/unix-socket.h"

namespace vgpu {
namespace {

struct Done {};  // the result of work that has none

std::string text(capnp::Text::Reader reader) { return {reader.begin(), reader.size()}; }

// What a program shares, ours to keep: what the message carried ends with the message.
struct ProgramMemory {
  kj::AutoCloseFd segment, hostArena, output;
};

template <typename Params>
kj::Promise<ProgramMemory> receiveMemory(Params params) {
  auto descriptors = kj::heapArrayBuilder<kj::Promise<kj::AutoCloseFd>>(3);
  descriptors.add(receiveDescriptor(params.getSegment()));
  descriptors.add(receiveDescriptor(params.getHostArena()));
  descriptors.add(receiveDescriptor(params.getOutput()));
  return kj::joinPromises(descriptors.finish()).then([](kj::Array<kj::AutoCloseFd>&& all) {
    return ProgramMemory{kj::mv(all[0]), kj::mv(all[1]), kj::mv(all[2])};
  });
}

// What kernels print is the program's output. This process has one session, so its own standard output can be that.
void printTo(const kj::AutoCloseFd& output) { KJ_SYSCALL(dup2(output, STDOUT_FILENO)); }

// The bounds of what a session may share are stub::Worker's to know; here only the seals are checked.
MemoryFile adopt(kj::AutoCloseFd& fd) {
  return MemoryFile::adopt(fd.release(), 1, std::numeric_limits<int64_t>::max());
}

checkpoint::Identity identityOf(control::SessionInfo::Reader session, capnp::Text::Reader reattach) {
  return {text(session.getId()), text(session.getName()), text(session.getProgram()), session.getPid(), text(reattach)};
}

void give(const checkpoint::Report& from, control::Report::Builder to) {
  to.setDeviceBytes(from.deviceBytes);
  to.setStoredBytes(from.storedBytes);
  to.setObjects(from.objects);
  to.setTailFrames(from.tailFrames);
}

checkpoint::Progress progressTo(const std::shared_ptr<ProgressRelay>& relay) {
  return [relay](const char* phase, uint64_t doneBytes, uint64_t totalBytes) {
    relay->report(phase, doneBytes, totalBytes);
  };
}

}  // namespace

kj::Promise<void> WorkerServer::hello(HelloContext context) {
  struct Found {
    std::vector<DeviceDescription> devices;
    int version = 0;
  };
  auto found = thread.run([this] {
    Found result;
    if (driver == nullptr) driver = std::make_unique<stub::Driver>(stub::Driver::load(library));
    result.devices = listDevices(*driver);
    stub::require(*driver, driver->cuDriverGetVersion(&result.version), "cuDriverGetVersion");
    if (worker == nullptr) {
      worker = std::make_unique<stub::Worker>(*driver, images);
      // Registering it takes the driver tens of milliseconds: better now than when a program waits.
      worker->attach(Segment::create(), MemoryFile::create("vgpu-host-arena", hostArenaBytes));
    }
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
    }
  });
}

stub::Worker& WorkerServer::running() {
  if (worker == nullptr) fail("a worker must be greeted before it can work");
  return *worker;
}

kj::Promise<void> WorkerServer::attach(AttachContext context) {
  return receiveDescriptor(context.getParams().getOutput())
      .then([this](kj::AutoCloseFd&& output) {
        printTo(output);
        return thread.run([this] {
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
  return thread.run([this] { return running().quiesce(); }).then([context](uint64_t position) mutable {
    faultPoint("suspend.quiesced");
    context.getResults().setPosition(position);
  });
}

kj::Promise<void> WorkerServer::proceed(ProceedContext) {
  return thread
      .run([this] {
        running().proceed();
        return Done{};
      })
      .ignoreResult();
}

kj::Promise<void> WorkerServer::save(SaveContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  auto relay = std::make_shared<ProgressRelay>(params.getProgress());
  auto saved = thread.run([this, relay, directory = text(params.getDirectory()), objects = text(params.getObjects()),
                           identity = identityOf(params.getSession(), params.getReattach())] {
    relay->report("starting", 0, 0);  // it may have been cancelled while it waited for its turn
    return checkpoint::save(running(), directory, objects, identity, progressTo(relay));
  });
  return cancelOnDrop(
      saved.then([context](checkpoint::Report&& report) mutable { give(report, context.getResults().initReport()); }),
      relay);
}

kj::Promise<void> WorkerServer::restore(RestoreContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  auto relay = std::make_shared<ProgressRelay>(params.getProgress());
  std::string directory = text(params.getDirectory());
  auto memory = receiveMemory(params);
  auto restored = memory.then([this, relay, directory](ProgramMemory&& memory) {
    printTo(memory.output);
    return thread.run([this, relay, directory, memory = kj::mv(memory)]() mutable {
      running().attach(adopt(memory.segment), adopt(memory.hostArena));
      faultPoint("resume.memory-attached");
      checkpoint::Report report = checkpoint::restore(running(), directory, progressTo(relay));
      running().proceed();
      faultPoint("resume.proceeded");
      return report;
    });
  });
  return cancelOnDrop(restored.then([context](checkpoint::Report&& report) mutable {
    give(report, context.getResults().initReport());
  }),
                      relay);
}

}  // namespace vgpu
