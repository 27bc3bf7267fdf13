#include "tools/vgpud/arrivals.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "tools/common/descriptor.h"
#include "tools/vgpud/resume.h"
#include "vgpu/base/fail.h"
#include "vgpu/snapshot/manifest.h"

namespace vgpu::daemon {
namespace {

// For a source to connect its streams, and for a stream to say whose it is.
constexpr auto streamLimit = 10 * kj::SECONDS;

std::string newToken() {
  std::string token(migrationTokenBytes, 0);
  KJ_SYSCALL(getrandom(token.data(), token.size(), 0));
  return token;
}

// The devices that the program has seen must be here, in the same order: their limits are part of its decisions.
void requireDevices(capnp::List<control::Device>::Reader seen, const std::vector<DeviceInfo>& here) {
  if (seen.size() > here.size())
    fail(fmt::format("the session comes from a node with {} GPUs, and this one has {}", seen.size(), here.size()));
  for (unsigned i = 0; i < seen.size(); ++i)
    if (seen[i].getName() != here[i].name.c_str())
      fail(fmt::format("GPU {} of the session is a {}, and here it would be a {}: migrate it to the same model", i,
                       seen[i].getName().cStr(), here[i].name));
}

}  // namespace

class Arrivals::Server final : public control::Arrival::Server {
 public:
  Server(Arrivals& arrivals, Sessions& sessions, std::string token, std::string session, kj::Own<WorkerProcess> worker)
      : arrivals(arrivals), sessions(sessions), token(std::move(token)), session(std::move(session)), worker(kj::mv(worker)) {
    arrivals.waiting[this->token] = this;
  }
  ~Server() noexcept(false) { arrivals.waiting.erase(token); }

  void take(kj::AutoCloseFd stream) {
    if (streams.size() == migrationStreams) return;
    streams.add(kj::mv(stream));
    if (streams.size() == migrationStreams) all.fulfiller->fulfill();
  }

 protected:
  kj::Promise<void> begin(BeginContext) override {
    auto late = arrivals.io.provider->getTimer().afterDelay(streamLimit).then([] {
      fail("the streams of the session's memory did not come in 10 s");
    });
    auto come = kj::mv(all.promise).exclusiveJoin(kj::mv(late));
    return come.then([this] {
      auto request = worker->remote().takeAheadRequest();
      auto list = request.initStreams(static_cast<unsigned>(streams.size()));
      for (unsigned i = 0; i < streams.size(); ++i) list.set(i, kj::heap<PassedDescriptor>(kj::mv(streams[i])));
      return worker->orExit(request.send().ignoreResult());
    });
  }

  kj::Promise<void> complete(CompleteContext context) override {
    context.allowCancellation();
    if (worker.get() == nullptr) fail("session " + session + " has arrived already, or failed to");
    auto params = context.getParams();
    return resume(sessions, params.getDirectory(), params.getProgress(), {}, kj::mv(worker))
        .then([this, context](Resumed&& resumed) mutable {
          auto results = context.getResults();
          KJ_IF_MAYBE (arrived, sessions.find(resumed.session)) arrived->describe(results.initSession());
          resumed.report.give(results.initReport());
        });
  }

 private:
  Arrivals& arrivals;
  Sessions& sessions;
  const std::string token, session;
  kj::Own<WorkerProcess> worker;
  kj::Vector<kj::AutoCloseFd> streams;
  kj::PromiseFulfillerPair<void> all = kj::newPromiseAndFulfiller<void>();
};

kj::Promise<void> Arrivals::receive(Sessions& sessions, ReceiveContext context) {
  auto params = context.getParams();
  if (params.getSnapshotVersion() != snapshot::snapshotVersion)
    fail(fmt::format(
        "this node reads snapshots of version {}, and the session's node writes version {}: use the same vgpu for both",
        snapshot::snapshotVersion, params.getSnapshotVersion()));
  requireDevices(params.getDevices(), sessions.pool.devices());
  std::string id = params.getSession().getId();
  if (sessions.find(id) != nullptr) fail("session " + id + " is on this node already");
  spdlog::info("session {} ({}) is to come here", id, params.getSession().getName().cStr());
  return sessions.pool.take(WorkerPool::Want::fresh)
      .then([this, &sessions, context, id](kj::Own<WorkerProcess>&& worker) mutable {
        std::string token = newToken();
        auto results = context.getResults();
        results.setToken(kj::StringPtr(token.c_str(), token.size()).asBytes());
        results.setArrival(kj::heap<Server>(*this, sessions, token, id, kj::mv(worker)));
      });
}

kj::Promise<void> Arrivals::admit(kj::AutoCloseFd socket) {
  auto observer = kj::heap<kj::UnixEventPort::FdObserver>(io.unixEventPort, socket, kj::UnixEventPort::FdObserver::OBSERVE_READ);
  auto spoken = observer->whenBecomesReadable().then([] { return true; });
  auto silent = io.provider->getTimer().afterDelay(streamLimit).then([] { return false; });
  return spoken.exclusiveJoin(kj::mv(silent))
      .then([this, socket = kj::mv(socket), observer = kj::mv(observer)](bool speaks) mutable {
        observer = nullptr;
        std::string token(migrationTokenBytes, 0);
        // A sender writes it at once; one that does not is no daemon of ours.
        if (!speaks || recv(socket, token.data(), token.size(), MSG_DONTWAIT) != static_cast<ssize_t>(token.size())) return;
        auto found = waiting.find(token);
        if (found == waiting.end()) return;
        int flags;
        KJ_SYSCALL(flags = fcntl(socket, F_GETFL));
        KJ_SYSCALL(fcntl(socket, F_SETFL, flags & ~O_NONBLOCK));
        found->second->take(kj::mv(socket));
      });
}

}  // namespace vgpu::daemon
