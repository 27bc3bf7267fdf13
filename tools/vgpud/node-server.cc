#include "tools/vgpud/node-server.h"

#include <capnp/rpc-twoparty.h>
#include <fmt/format.h>
#include <unistd.h>

#include "tools/common/memory-usage.h"
#include "tools/vgpud/client-stream.h"
#include "tools/vgpud/explain.h"
#include "tools/vgpud/log.h"
#include "tools/vgpud/migrate.h"
#include "tools/vgpud/park.h"
#include "tools/vgpud/resume-together.h"
#include "tools/vgpud/snapshot.h"
#include "tools/vgpud/suspend-together.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/text.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::daemon {
namespace {

constexpr auto firstWordLimit = 10 * kj::SECONDS;
constexpr uint64_t mostMessageWords = 64 << 10;  // half a megabyte: a request contains little more than a path and a name
constexpr size_t mostQueuedBytes = size_t{1} << 20;  // the size of a list of some thousand sessions
constexpr unsigned mostCalls = 1000;

// Makes one NodeServer for each bootstrap request of the client, so that each request counts as a call.
class Servers final : public capnp::BootstrapFactory<capnp::rpc::twoparty::VatId> {
 public:
  explicit Servers(Sessions& sessions) : sessions(sessions) {}
  capnp::Capability::Client createFor(capnp::rpc::twoparty::VatId::Reader) override {
    ++*calls;
    return control::Node::Client(kj::heap<NodeServer>(sessions, calls));
  }

  const std::shared_ptr<unsigned> calls = std::make_shared<unsigned>(0);

 private:
  Sessions& sessions;
};

class Connection {
 public:
  Connection(Sessions& sessions, Peer peer, kj::Own<kj::AsyncIoStream> socket)
      : peer(peer),
        servers(sessions),
        stream(kj::mv(socket), sessions.io.provider->getTimer(), [this] { return excess(); }),
        network(stream, capnp::rpc::twoparty::Side::SERVER, limits()),
        rpc(capnp::makeRpcServer(network, servers)) {
    rpc.setFlowLimit(mostMessageWords);
  }

  // An RpcSystem that cannot read any more still waits until its replies are read; a client over its limit does not get that time.
  kj::Promise<void> ended() { return network.onDisconnect().exclusiveJoin(kj::mv(cutOff.promise)); }

 private:
  static capnp::ReaderOptions limits() {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = mostMessageWords;
    return options;
  }

  std::string excess() {
    std::string problem;
    if (network.getCurrentQueueSize() > mostQueuedBytes) {
      problem = fmt::format("it does not read its connection: {} bytes of replies wait", network.getCurrentQueueSize());
    } else if (*servers.calls > mostCalls) {
      problem = fmt::format("it has made {} calls on one connection", *servers.calls);
    }
    if (!problem.empty()) {
      warnLimited("client", peer.pid, fmt::format("client {} is disconnected: {}", peer.pid, problem));
      cutOff.fulfiller->fulfill();
    }
    return problem;
  }

  Peer peer;
  kj::PromiseFulfillerPair<void> cutOff = kj::newPromiseAndFulfiller<void>();
  Servers servers;
  ClientStream stream;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;
};

template <typename Params>
MigrateOptions optionsOf(Params params) {
  MigrateOptions options{.target = params.getTarget(), .downtimeSeconds = params.getDowntimeSeconds()};
  if (params.getTimeoutSeconds() != 0) options.timeoutSeconds = params.getTimeoutSeconds();
  return options;
}

kj::Promise<void> serveRpc(Sessions& sessions, kj::AutoCloseFd socket) {
  Peer peer = peerOf(socket);
  auto connection = kj::heap<Connection>(sessions, peer, sessions.io.lowLevelProvider->wrapSocketFd(kj::mv(socket)));
  auto ended = connection->ended();
  return ended.attach(kj::mv(connection));
}

}  // namespace

kj::Promise<void> NodeServer::hello(HelloContext context) {
  ++*calls;
  uint32_t theirs = context.getParams().getVersion();
  if (theirs != control::VERSION) {
    fail(fmt::format("this vgpud speaks control version {}, the caller version {}: use the same vgpu for both",
                     control::VERSION, theirs));
  }
  auto results = context.getResults();
  results.setVersion(control::VERSION);
  results.setRunDirectory(reader(sessions.directory.path()));
  results.setPid(getpid());
  results.setDaemon(reader(sessions.daemon));
  results.setIsEnding(!sessions.isAdmitting());
  const auto& devices = sessions.pool.devices();
  const auto freeNow = sessions.pool.workerKind().label == "cuda" ? freeGpuMemory() : std::map<std::string, uint64_t>();
  auto list = results.initDevices(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    list[i].setOrdinal(devices[i].ordinal);
    list[i].setName(reader(devices[i].name));
    list[i].setUuid(reader(devices[i].uuid));
    list[i].setMemoryBytes(devices[i].memoryBytes);
    auto found = freeNow.find(devices[i].uuid);
    list[i].setFreeBytes(found == freeNow.end() ? devices[i].freeBytes : found->second);
  }
  return kj::READY_NOW;
}

kj::Promise<void> NodeServer::list(ListContext context) {
  ++*calls;
  auto all = sessions.all();
  auto list = context.getResults().initSessions(all.size());
  for (size_t i = 0; i < all.size(); ++i) all[i]->describe(list[i]);
  auto before = context.getResults().initBefore();
  before.setAll(sessions.launchesBefore().all);
  before.setFolded(sessions.launchesBefore().folded);
  return kj::READY_NOW;
}

kj::Promise<void> NodeServer::suspend(SuspendContext context) {
  ++*calls;
  context.allowCancellation();
  auto params = context.getParams();
  Session& session = sessions.get(params.getSession());
  unsigned seconds = params.getTimeoutSeconds() == 0 ? suspendTimeout : params.getTimeoutSeconds();
  std::vector<SessionFolder> tree;
  for (auto one : params.getTree()) tree.push_back({one.getSession(), one.getDirectory()});
  if (!tree.empty() && tree.front().session != session.id) fail("a list of sessions does not begin with the one that the command names");
  const bool withMachine = params.getWithMachine();
  if (withMachine && !session.place.exists()) fail("session " + session.id + " does not share memory with a virtual machine");
  return suspendTogether(sessions, {session.id, params.getDirectory()}, std::move(tree), params.getProgress(), seconds,
                         params.getMemory())
      .then([this, withMachine, directory = std::string(params.getDirectory())](kj::Array<SuspendedMember>&& suspended) mutable {
        auto all = withMachine ? suspendedWithMachine(sessions, suspended[0].session, std::move(directory))
                               : kj::Promise<void>(kj::READY_NOW);
        return all.then([suspended = kj::mv(suspended)]() mutable { return kj::mv(suspended); });
      })
      .then([this, context](kj::Array<SuspendedMember>&& suspended) mutable {
        auto results = context.getResults();
        suspended[0].report.give(results.initReport());
        auto others = results.initOthers(static_cast<unsigned>(suspended.size() - 1));
        for (unsigned i = 0; i < others.size(); ++i) {
          KJ_IF_MAYBE (session, sessions.find(suspended[i + 1].session)) session->describe(others[i].initSession());
          suspended[i + 1].report.give(others[i].initReport());
        }
      });
}

kj::Promise<void> NodeServer::resume(ResumeContext context) {
  ++*calls;
  sessions.requireAdmitting();
  context.allowCancellation();
  auto params = context.getParams();
  std::vector<uint32_t> devices;
  for (uint32_t device : params.getDevices()) devices.push_back(device);
  std::vector<TreeMember> members{{params.getDirectory()}};
  for (auto directory : params.getOthers()) members.push_back({directory});
  auto copies = params.getCopies();
  if (copies.size() != 0 && copies.size() != members.size())
    fail("a resume of " + std::to_string(members.size()) + " sessions names " + std::to_string(copies.size()) + " copies");
  for (unsigned i = 0; i < copies.size(); ++i) members[i].copy = copies[i];
  return resumeTogether(sessions, std::move(members), params.getProgress(), std::move(devices))
      .then([this, context](kj::Array<Resumed>&& resumed) mutable {
        auto results = context.getResults();
        auto describe = [&](size_t i, control::SessionInfo::Builder info) {
          KJ_IF_MAYBE (session, sessions.find(resumed[i].session)) session->describe(info);
        };
        describe(0, results.initSession());
        auto others = results.initOthers(static_cast<unsigned>(resumed.size() - 1));
        for (unsigned i = 0; i < others.size(); ++i) describe(i + 1, others[i]);
        resumed[0].report.give(results.initReport());
      });
}

kj::Promise<void> NodeServer::workers(WorkersContext context) {
  ++*calls;
  struct Listed {
    pid_t pid;
    std::string session;
    bool isUsed;
  };
  std::vector<Listed> all;
  for (auto& session : sessions.all())
    KJ_IF_MAYBE (worker, session->worker) {
      all.push_back({(*worker)->pid(), session->id, false});
    }
  for (auto& kept : sessions.pool.kept.all()) all.push_back({kept.worker->pid(), kept.session, false});
  for (auto& waiting : sessions.pool.waiting()) all.push_back({waiting.pid, "", waiting.isUsed});
  auto onGpu = sessions.pool.workerKind().label == "cuda" ? gpuMemory() : GpuMemory{.known = true, .byProcess = {}};
  auto list = context.getResults().initWorkers(static_cast<unsigned>(all.size()));
  for (unsigned i = 0; i < all.size(); ++i) {
    auto& [pid, session, isUsed] = all[i];
    list[i].setPid(pid);
    list[i].setSession(reader(session));
    list[i].setUsed(isUsed);
    list[i].setHostBytes(hostMemory(pid));
    auto found = onGpu.byProcess.find(pid);
    list[i].setGpuKnown(onGpu.known);
    if (found != onGpu.byProcess.end()) list[i].setGpuBytes(found->second);
  }
  return kj::READY_NOW;
}

kj::Promise<void> NodeServer::snapshot(SnapshotContext context) {
  ++*calls;
  context.allowCancellation();
  auto params = context.getParams();
  unsigned seconds = params.getTimeoutSeconds() == 0 ? suspendTimeout : params.getTimeoutSeconds();
  return snapshotOf(sessions, sessions.get(params.getSession()), params.getDirectory(), params.getProgress(), seconds)
      .then([context](OperationReport&& report) mutable { report.give(context.getResults().initReport()); });
}

kj::Promise<void> NodeServer::explain(ExplainContext context) {
  ++*calls;
  context.allowCancellation();
  return daemon::explain(sessions, sessions.get(context.getParams().getSession())).then([context](Explanation&& found) mutable {
    auto results = context.getResults();
    auto list = results.initObstacles(static_cast<unsigned>(found.obstacles.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setRefuses(found.obstacles[i].refuses);
      list[i].setObject(reader(found.obstacles[i].object));
      list[i].setWhy(reader(found.obstacles[i].why));
    }
    results.setDeviceBytes(found.deviceBytes);
  });
}

kj::Promise<void> NodeServer::migrate(MigrateContext context) {
  ++*calls;
  context.allowCancellation();
  auto params = context.getParams();
  return daemon::migrate(sessions, sessions.get(params.getSession()), optionsOf(params), params.getProgress())
      .then([context](Migrated&& migrated) mutable {
        context.getResults().initSession().setDevice(reader(migrated.device));
        migrated.report.give(context.getResults().initReport());
      });
}

kj::Promise<void> NodeServer::depart(DepartContext context) {
  ++*calls;
  context.allowCancellation();
  auto params = context.getParams();
  return daemon::depart(sessions, sessions.get(params.getSession()), optionsOf(params), params.getProgress())
      .then([context](control::Departure::Client&& departure) mutable { context.getResults().setDeparture(kj::mv(departure)); });
}

kj::Promise<void> NodeServer::park(ParkContext context) {
  ++*calls;
  return daemon::park(sessions, sessions.get(context.getParams().getSession()));
}

kj::Promise<void> NodeServer::pauseGuest(PauseGuestContext context) {
  ++*calls;
  context.allowCancellation();
  return sessions.pauses.begin(context.getParams().getGuest()).then([context](control::GuestPause::Client&& pause) mutable {
    context.getResults().setPause(kj::mv(pause));
  });
}

kj::Promise<void> NodeServer::receive(ReceiveContext context) {
  ++*calls;
  return sessions.arrivals.receive(sessions, context);
}

kj::Promise<void> serveNode(Sessions& sessions, kj::AutoCloseFd socket) {
  auto observer = kj::heap<kj::UnixEventPort::FdObserver>(sessions.io.unixEventPort, socket,
                                                          kj::UnixEventPort::FdObserver::OBSERVE_READ);
  auto spoken = observer->whenBecomesReadable().attach(kj::mv(observer)).then([] { return true; });
  auto silent = sessions.io.provider->getTimer().afterDelay(firstWordLimit).then([] { return false; });
  return spoken.exclusiveJoin(kj::mv(silent))
      .then([&sessions, socket = kj::mv(socket)](bool speaks) mutable -> kj::Promise<void> {
        if (!speaks) return kj::READY_NOW;
        return serveRpc(sessions, kj::mv(socket));
      });
}

}  // namespace vgpu::daemon
