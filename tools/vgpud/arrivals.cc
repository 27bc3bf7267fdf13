#include "tools/vgpud/arrivals.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "tools/common/arrival.h"
#include "tools/common/descriptor.h"
#include "tools/vgpud/arrival-files.h"
#include "tools/vgpud/host-arena-file.h"
#include "tools/vgpud/resume.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"
#include "vgpu/snapshot/manifest.h"

namespace vgpu::daemon {
namespace {

// Limit for a source to connect its streams, and for a stream to send its token.
constexpr auto streamLimit = 10 * kj::SECONDS;

std::string newToken() {
  std::string token(arrivalTokenBytes, 0);
  KJ_SYSCALL(getrandom(token.data(), token.size(), 0));
  return token;
}

// The devices that the program has seen must exist here in the same order, because the program has adapted to their limits.
void requireDevices(capnp::List<control::Device>::Reader seen, const std::vector<DeviceInfo>& here) {
  if (seen.size() > here.size())
    fail(fmt::format("the session comes from a node with {} GPUs, but this one has {}", seen.size(), here.size()));
  for (unsigned i = 0; i < seen.size(); ++i)
    if (seen[i].getName() != here[i].name.c_str())
      fail(fmt::format("GPU {} of the session is a {}, but here it would be a {}: migrate it to a node with the same model", i,
                       seen[i].getName().cStr(), here[i].name));
}

}  // namespace

class Arrivals::Server final : public control::Arrival::Server {
 public:
  Server(Arrivals& arrivals, Sessions& sessions, std::string token, std::string session, kj::Own<WorkerProcess> worker,
         bool isElsewhere)
      : token(std::move(token)),
        arrivals(arrivals),
        sessions(sessions),
        session(std::move(session)),
        worker(kj::mv(worker)),
        files(isElsewhere ? kj::heap<ArrivalFiles>(sessions.files) : kj::Own<ArrivalFiles>()) {
    arrivals.waiting[this->token] = this;
  }
  ~Server() noexcept(false) {
    arrivals.waiting.erase(token);
    if (files.get() == nullptr) return;
    auto discarded = files->discard().attach(kj::mv(files));
    sessions.spawn(discarded.then([&sessions = sessions](StateDirectory::Shared&& made) {
      if (made != nullptr) sessions.remove(std::move(made));
    }));
  }

  // `newcomer`: for a session whose virtual machine comes too.
  kj::Promise<void> prepare(Guests::Newcomer newcomer) {
    if (!isElsewhere()) return kj::READY_NOW;
    auto opened = files->open(sessions.directory.renewals(), session + "-" + newSessionId());
    if (!newcomer.place.exists()) return opened;
    comesWithMachine = true;
    return opened.then([this, newcomer = kj::mv(newcomer)]() mutable { return arrivals.programOf(sessions, kj::mv(newcomer)); })
        .then([this](kj::Own<ProgramLink>&& link) { enter(kj::mv(link)); });
  }

  void takeStream(kj::AutoCloseFd stream) {
    if (streams.size() == migrationStreams) return;
    streams.add(kj::mv(stream));
    if (streams.size() == migrationStreams) allStreams.fulfiller->fulfill();
  }

  // Makes a state directory for it, as for a program that opens a session. A directory that the session had here before is removed once its
  // relay has ended.
  void takeProgram(kj::AutoCloseFd socket) {
    if (!isElsewhere() || program.get() != nullptr || comesWithMachine || !isTrusted(peerOf(socket))) return;
    enter(kj::heap<ProgramLink>(sessions.io, kj::mv(socket)));
  }

  const std::string token;

 protected:
  void enter(kj::Own<ProgramLink> link) {
    program = kj::mv(link);
    auto work = sessions.files.run([in = sessions.directory.arrived(), id = session, owner = program->peer().pid] {
      return StateDirectory::makeNext(in, id, owner);
    });
    auto made = work.fork();
    auto watched = made.addBranch().then(  // runs whatever becomes of the session, and of this object
        [&sessions = sessions](StateDirectory::Shared&& made) { sessions.removeAfterProgram(std::move(made)); }, [](kj::Exception&&) {});
    sessions.spawn(kj::mv(watched));
    entering = made.addBranch()
                   .then([this](StateDirectory::Shared&& made) {
                     program->send([&](control::ToSession::Builder message) {
                       auto opened = message.initOpened();
                       opened.setSession(reader(session));
                       opened.setDirectory(reader(made->path()));
                     });
                     programCame.fulfiller->fulfill();
                   })
                   .eagerlyEvaluate([this](kj::Exception&& exception) { programCame.fulfiller->reject(kj::mv(exception)); });
  }

  kj::Promise<void> begin(BeginContext context) override {
    context.allowCancellation();
    auto come = kj::mv(allStreams.promise);
    if (isElsewhere()) come = come.then([this] { return kj::mv(programCame.promise); });
    auto late = arrivals.io.provider->getTimer().afterDelay(streamLimit).then([this] {
      fail(streams.size() == migrationStreams ? "the relay process at the program of session " + session + " did not come in 10 s"
                                              : "the streams of the session's memory did not come in 10 s");
    });
    return come.exclusiveJoin(kj::mv(late)).then([this] {
      auto request = worker->remote().takeAheadRequest();
      auto list = request.initStreams(static_cast<unsigned>(streams.size()));
      for (unsigned i = 0; i < streams.size(); ++i) list.set(i, kj::heap<PassedDescriptor>(kj::mv(streams[i])));
      return worker->orExit(request.send().ignoreResult());
    });
  }

  kj::Promise<void> put(PutContext context) override {
    if (!isElsewhere()) fail("this session comes from this host: it needs no files");
    auto params = context.getParams();
    return files->put(params.getFile(), params.getOffset(), kj::heapArray<kj::byte>(params.getBytes()));
  }

  kj::Promise<void> complete(CompleteContext context) override {
    context.allowCancellation();
    auto params = context.getParams();
    faultPoint("migrate.arriving");
    return taken(params.getDirectory(), params.getProgress()).then([this, context](Resumed&& resumed) mutable {
      auto results = context.getResults();
      KJ_IF_MAYBE (arrived, sessions.find(resumed.session)) arrived->describe(results.initSession());
      resumed.report.give(results.initReport());
    });
  }

  kj::Promise<void> restore(RestoreContext context) override {
    context.allowCancellation();
    if (!comesWithMachine)
      fail("session " + session + " does not come with a virtual machine: it is restored once all of it has arrived");
    sessions.requireAdmitting();
    faultPoint("machine.restoring");
    auto params = context.getParams();
    onDisk = params.getDirectory();
    if (onDisk.empty()) return restoreAhead(files->path(), params.getProgress());
    return programCame.promise.then(
        [this, progress = params.getProgress()]() mutable { return restoreAhead(onDisk, kj::mv(progress)); });
  }

  kj::Promise<void> watch(WatchContext context) override {
    context.allowCancellation();
    KJ_IF_MAYBE (begun, ahead) return begun->addBranch().ignoreResult();
    fail("session " + session + " has not been restored");
  }

 private:
  kj::Promise<void> restoreAhead(std::string directory, control::Progress::Client progress) {
    auto restored = kj::newPromiseAndFulfiller<void>();
    Arrived arrived = takeAll();
    arrived.machine = Arrived::Machine{kj::mv(restored.fulfiller), kj::mv(machineCame.promise)};
    ahead = resume(sessions, std::move(directory), kj::mv(progress), {}, kj::mv(arrived)).fork();
    // Pending until the machine comes, unless the restore fails.
    auto first =
        restored.promise.catch_([](kj::Exception&&) -> kj::Promise<void> { return kj::NEVER_DONE; });  // `ahead` reports the reason
    return first.exclusiveJoin(KJ_ASSERT_NONNULL(ahead).addBranch().ignoreResult());
  }

  kj::Promise<Resumed> taken(std::string directory, control::Progress::Client progress) {
    KJ_IF_MAYBE (begun, ahead) {
      machineCame.fulfiller->fulfill();
      return begun->addBranch();
    }
    if (comesWithMachine) fail("session " + session + " comes with a virtual machine: it must be restored before the machine arrives");
    sessions.requireAdmitting();
    return resume(sessions, isElsewhere() ? files->path() : directory, kj::mv(progress), {}, takeAll());
  }

  Arrived takeAll() {
    if (worker.get() == nullptr) fail("session " + session + " has already arrived, or failed to arrive");
    Arrived arrived{.worker = kj::mv(worker)};
    if (!isElsewhere()) return arrived;
    arrived.program = kj::mv(program);
    arrived.fillArena = kj::Function<kj::Promise<void>(int)>([this](int arena) {
      if (onDisk.empty()) return files->fillArena(arena);
      return sessions.files.run([directory = onDisk, arena = duplicate(arena)] { loadHostArena(directory, arena); });
    });
    return arrived;
  }

  bool isElsewhere() const { return files.get() != nullptr; }

  Arrivals& arrivals;
  Sessions& sessions;
  const std::string session;
  kj::Own<WorkerProcess> worker;
  kj::Own<ArrivalFiles> files;  // for a session from another host
  kj::Vector<kj::AutoCloseFd> streams;
  kj::PromiseFulfillerPair<void> allStreams = kj::newPromiseAndFulfiller<void>(),
                                 programCame = kj::newPromiseAndFulfiller<void>();
  kj::Own<ProgramLink> program;
  kj::Promise<void> entering = nullptr;
  bool comesWithMachine = false;
  std::string onDisk;  // the directory of its snapshot, if it was saved with its machine
  kj::PromiseFulfillerPair<void> machineCame = kj::newPromiseAndFulfiller<void>();
  kj::Maybe<kj::ForkedPromise<Resumed>> ahead;  // for a session that was restored before its machine comes
};

kj::Promise<void> Arrivals::receive(Sessions& sessions, ReceiveContext context) {
  sessions.requireAdmitting();
  auto params = context.getParams();
  if (params.getSnapshotVersion() != snapshot::snapshotVersion)
    fail(fmt::format(
        "this node reads snapshots of version {}, and the session's node writes version {}: use the same vgpu for both",
        snapshot::snapshotVersion, params.getSnapshotVersion()));
  requireDevices(params.getDevices(), sessions.pool.devices());
  return departure(sessions, params.getSession().getId()).then([this, &sessions, context]() mutable {
    return prepare(sessions, context);
  });
}

// A session that comes back may still be leaving: its program has continued elsewhere, and has not closed its connection here yet.
kj::Promise<void> Arrivals::departure(Sessions& sessions, std::string id) {
  KJ_IF_MAYBE (known, sessions.find(id)) {
    if (!known->isMoving && !*known->moved) fail("session " + id + " is on this node already");
    auto late = io.provider->getTimer().afterDelay(streamLimit);
    return known->gone().exclusiveJoin(kj::mv(late)).then([&sessions, id] {
      return kj::evalLast([&sessions, id] {  // after the events that end it here
        if (sessions.find(id) != nullptr) fail("session " + id + " is on this node already");
      });
    });
  }
  return kj::READY_NOW;
}

kj::Promise<void> Arrivals::prepare(Sessions& sessions, ReceiveContext context) {
  auto params = context.getParams();
  std::string id = params.getSession().getId();
  spdlog::info("session {} ({}) is about to arrive", id, params.getSession().getName().cStr());
  auto info = params.getSession();
  Guests::Newcomer newcomer{placeOf(info.getPlace()), info.getName(), info.getProgram(), info.getPid(), ""};
  return sessions.pool.take(WorkerPool::Want::fresh)
      .then([this, &sessions, id, newcomer = kj::mv(newcomer),
             isElsewhere = params.getIsElsewhere()](kj::Own<WorkerProcess>&& worker) mutable {
        auto server = kj::heap<Server>(*this, sessions, newToken(), id, kj::mv(worker), isElsewhere);
        auto ready = server->prepare(kj::mv(newcomer));
        return ready.then([server = kj::mv(server)]() mutable { return kj::mv(server); });
      })
      .then([context](kj::Own<Server>&& server) mutable {
        auto results = context.getResults();
        results.setToken(kj::StringPtr(server->token.c_str(), server->token.size()).asBytes());
        results.setArrival(kj::mv(server));
      });
}

kj::Promise<kj::Own<ProgramLink>> Arrivals::programOf(Sessions& sessions, Guests::Newcomer newcomer) {
  auto come = kj::newPromiseAndFulfiller<kj::Own<ProgramLink>>();
  newcomer.token = newToken();
  expected[newcomer.token] = come.fulfiller.get();
  auto forget = kj::defer([this, token = newcomer.token, fulfiller = kj::mv(come.fulfiller)] { expected.erase(token); });
  auto late = io.provider->getTimer().afterDelay(streamLimit).then([]() -> kj::Own<ProgramLink> {
    fail("the relay process for the session's slot in its machine's memory did not start in 10 s");
  });
  auto begun = sessions.guests->expect(io, sessions.processes, sessions.directory.path(), kj::mv(newcomer));
  return begun.then([come = kj::mv(come.promise)]() mutable { return kj::mv(come); })
      .exclusiveJoin(kj::mv(late))
      .attach(kj::mv(forget));
}

kj::Promise<void> Arrivals::admit(kj::AutoCloseFd socket) {
  auto observer = kj::heap<kj::UnixEventPort::FdObserver>(io.unixEventPort, socket, kj::UnixEventPort::FdObserver::OBSERVE_READ);
  auto spoken = observer->whenBecomesReadable().then([] { return true; });
  auto silent = io.provider->getTimer().afterDelay(streamLimit).then([] { return false; });
  return spoken.exclusiveJoin(kj::mv(silent))
      .then([this, socket = kj::mv(socket), observer = kj::mv(observer)](bool speaks) mutable {
        observer = nullptr;
        auto announced = speaks ? readAnnouncement(socket) : std::nullopt;
        auto program = announced && announced->what == Bringing::program ? expected.find(announced->token) : expected.end();
        if (program != expected.end() && isTrusted(peerOf(socket)))
          return program->second->fulfill(kj::heap<ProgramLink>(io, kj::mv(socket)));
        auto found = announced ? waiting.find(announced->token) : waiting.end();
        if (found == waiting.end()) return;
        if (announced->what == Bringing::program) return found->second->takeProgram(kj::mv(socket));
        int flags;
        KJ_SYSCALL(flags = fcntl(socket, F_GETFL));
        KJ_SYSCALL(fcntl(socket, F_SETFL, flags & ~O_NONBLOCK));
        found->second->takeStream(kj::mv(socket));
      });
}

}  // namespace vgpu::daemon
