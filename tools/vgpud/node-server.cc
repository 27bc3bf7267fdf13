#include "tools/vgpud/node-server.h"

#include <capnp/rpc-twoparty.h>
#include <fmt/format.h>
#include <unistd.h>

#include "tools/vgpud/memory-usage.h"
#include "tools/vgpud/resume.h"
#include "tools/vgpud/suspend.h"
#include "vgpu/wire/unix-socket.h"

namespace vgpu {
namespace {

constexpr auto firstWordLimit = 10 * kj::SECONDS;
constexpr uint64_t mostMessageWords = 64 << 10;  // half a megabyte: requests are a path and a name

capnp::Text::Reader reader(const std::string& text) { return {text.c_str(), text.size()}; }

struct Connection {
  kj::Own<kj::AsyncCapabilityStream> stream;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;

  Connection(kj::Own<kj::AsyncCapabilityStream> owned, control::Node::Client node, capnp::ReaderOptions limits)
      : stream(kj::mv(owned)),
        network(*stream, 0, capnp::rpc::twoparty::Side::SERVER, limits),
        rpc(capnp::makeRpcServer(network, kj::mv(node))) {}
};

kj::Promise<void> serveRpc(Sessions& sessions, const RunDirectory& directory, kj::AutoCloseFd socket) {
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = mostMessageWords;
  auto connection = kj::heap<Connection>(sessions.io.lowLevelProvider->wrapUnixSocketFd(kj::mv(socket)),
                                         kj::heap<NodeServer>(sessions, directory), limits);
  auto ended = connection->network.onDisconnect();
  return ended.attach(kj::mv(connection));
}

}  // namespace

kj::Promise<void> NodeServer::hello(HelloContext context) {
  uint32_t theirs = context.getParams().getVersion();
  if (theirs != control::VERSION) {
    fail(fmt::format("this vgpud speaks control version {}, the caller version {}: use the same vgpu for both",
                     control::VERSION, theirs));
  }
  auto results = context.getResults();
  results.setVersion(control::VERSION);
  results.setRunDirectory(reader(directory.path()));
  results.setPid(getpid());
  const auto& devices = sessions.pool.devices();
  auto list = results.initDevices(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    list[i].setOrdinal(devices[i].ordinal);
    list[i].setName(reader(devices[i].name));
    list[i].setUuid(reader(devices[i].uuid));
    list[i].setMemoryBytes(devices[i].memoryBytes);
  }
  return kj::READY_NOW;
}

kj::Promise<void> NodeServer::list(ListContext context) {
  auto all = sessions.all();
  auto list = context.getResults().initSessions(all.size());
  for (size_t i = 0; i < all.size(); ++i) all[i]->describe(list[i]);
  return kj::READY_NOW;
}

kj::Promise<void> NodeServer::suspend(SuspendContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  Session& session = sessions.get(params.getSession());
  unsigned seconds = params.getTimeoutSeconds() == 0 ? suspendTimeout : params.getTimeoutSeconds();
  return vgpu::suspend(sessions, session, params.getDirectory(), params.getProgress(), seconds)
      .then([context](OperationReport&& report) mutable { report.give(context.getResults().initReport()); });
}

kj::Promise<void> NodeServer::resume(ResumeContext context) {
  context.allowCancellation();
  auto params = context.getParams();
  return vgpu::resume(sessions, params.getDirectory(), params.getProgress())
      .then([this, context](Resumed&& resumed) mutable {
        auto results = context.getResults();
        KJ_IF_MAYBE (session, sessions.find(resumed.session)) {
          session->describe(results.initSession());
        }
        resumed.report.give(results.initReport());
      });
}

kj::Promise<void> NodeServer::workers(WorkersContext context) {
  auto warm = sessions.pool.warmWorkers();
  std::vector<std::pair<pid_t, std::string>> all;
  for (auto& session : sessions.all())
    KJ_IF_MAYBE (worker, session->worker) {
      all.emplace_back((*worker)->pid(), session->id);
    }
  for (pid_t pid : warm) all.emplace_back(pid, "");
  auto onGpu = sessions.pool.workerKind().label == "cuda" ? gpuMemory() : GpuMemory{.known = true, .byProcess = {}};
  auto list = context.getResults().initWorkers(static_cast<unsigned>(all.size()));
  for (unsigned i = 0; i < all.size(); ++i) {
    auto& [pid, session] = all[i];
    list[i].setPid(pid);
    list[i].setSession(reader(session));
    list[i].setHostBytes(hostMemory(pid));
    auto found = onGpu.byProcess.find(pid);
    list[i].setGpuKnown(onGpu.known);
    if (found != onGpu.byProcess.end()) list[i].setGpuBytes(found->second);
  }
  return kj::READY_NOW;
}

kj::Promise<void> serveNode(Sessions& sessions, const RunDirectory& directory, kj::AutoCloseFd socket) {
  auto observer = kj::heap<kj::UnixEventPort::FdObserver>(sessions.io.unixEventPort, socket,
                                                          kj::UnixEventPort::FdObserver::OBSERVE_READ);
  auto spoken = observer->whenBecomesReadable().attach(kj::mv(observer)).then([] { return true; });
  auto silent = sessions.io.provider->getTimer().afterDelay(firstWordLimit).then([] { return false; });
  return spoken.exclusiveJoin(kj::mv(silent))
      .then([&sessions, &directory, socket = kj::mv(socket)](bool speaks) mutable -> kj::Promise<void> {
        if (!speaks) return kj::READY_NOW;
        return serveRpc(sessions, directory, kj::mv(socket));
      });
}

}  // namespace vgpu
