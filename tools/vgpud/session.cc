#include "tools/vgpud/session.h"

#include <kj/debug.h>
#include <sys/random.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "tools/common/successor.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/text.h"

namespace vgpu::daemon {
namespace {

// A program accepts in milliseconds; one that takes this long is stopped (SIGSTOP, a debugger).
constexpr auto acceptLimit = 30 * kj::SECONDS;
// For a program whose machine must first be loaded and started.
constexpr auto machineLimit = 60 * kj::SECONDS;

}  // namespace

Session::Session(kj::AsyncIoContext& io, Processes& processes, kj::Own<ProgramLink> owned, const ProgramOpen& open,
                 StateDirectory::Shared state)
    : id(open.session),
      name(open.name),
      program(open.program),
      reattach(state->reattachSocket()),
      directory(std::move(state)),
      openedSeconds(time(nullptr)),
      link(kj::mv(owned)),
      place(open.place),
      relayed(open.relayed),
      files(open.files),
      io(io),
      processes(processes) {
  pid = link->peer().pid > 0 ? link->peer().pid : open.pid;
  left = link->serve([this](auto message, auto&& file) { handle(message, kj::mv(file)); })
             .exclusiveJoin(processes.ended(link->peer().pid))
             .fork();
}

void Session::handle(control::ToNode::Reader message, kj::Maybe<kj::AutoCloseFd> file) {
  if (!message.isGive())
    KJ_IF_MAYBE (unasked, file) files->close(kj::mv(*unasked));
  switch (message.which()) {
    case control::ToNode::GIVE:
      return give(message.getGive(), kj::mv(file));
    case control::ToNode::TAKE_BACK:
      return files->remove(sharedNameIn(message.getTakeBack()));
    case control::ToNode::MOVED:
      *moved = true;
      return;
    case control::ToNode::PARKED:
      if (parking == nullptr) fail("the program reported that it is parked, but it was not asked to park");
      parked = true;
      return;
    case control::ToNode::REWRITTEN:
      KJ_IF_MAYBE (answer, rewriting) (*answer)->fulfill();
      rewriting = nullptr;
      return;
    case control::ToNode::RENEW:
      KJ_IF_MAYBE (begin, renew) {
        if (!std::exchange(isRenewing, true)) (*begin)();
      }
      return;
    case control::ToNode::ACCEPTED:
      KJ_IF_MAYBE (answer, acceptance) {
        (*answer)->fulfill(message.getAccepted());
        acceptance = nullptr;
        return;
      }
      fail("the program accepted a session that was not offered to it");
    case control::ToNode::GATE_CLOSED:
    case control::ToNode::APART:
    case control::ToNode::REFUSED:
      break;
    default:
      fail("the program sent an unexpected message");
  }
  KJ_IF_MAYBE (answer, parking) {
    if (!message.isRefused()) fail("the program closed its gate instead of being parked");
    std::string reason = message.getRefused();
    (*answer)->rejectIfThrows([&] { fail("the program cannot be parked: " + reason); });
    parking = nullptr;
    return;
  }
  if (answersToIgnore > 0) {
    --answersToIgnore;
    return;
  }
  KJ_IF_MAYBE (answer, gateAnswer) {
    if (message.isRefused()) {
      (*answer)->rejectIfThrows([&] { fail(std::string("the program cannot ") + asked + ": " + message.getRefused().cStr()); });
    } else {
      (*answer)->fulfill(message.isGateClosed() ? message.getGateClosed().getPosition() : 0);
    }
    gateAnswer = nullptr;
    return;
  }
  fail("the program sent a reply without a request");
}

void Session::give(capnp::Data::Reader name, kj::Maybe<kj::AutoCloseFd> file) {
  KJ_IF_MAYBE (given, file) return files->put(sharedNameIn(name), kj::mv(*given));
  fail("the program sent a file's name without its descriptor");
}

// A gate closes in microseconds and the object list commits in milliseconds, unless the program is stopped or a call inside waits for work
// that the GPU does not reach.
kj::Promise<uint64_t> Session::closeGate(unsigned seconds) {
  auto answer = kj::newPromiseAndFulfiller<uint64_t>();
  gateAnswer = kj::mv(answer.fulfiller);
  asked = "close its gate";
  link->send([](control::ToSession::Builder message) { message.setCloseGate(); });
  auto late = io.provider->getTimer().afterDelay(seconds * kj::SECONDS).then([this, seconds]() -> uint64_t {
    fail("program " + std::to_string(pid) + " did not close its gate in " + std::to_string(seconds) +
         " s: is it stopped, or does one of its calls wait for the GPU? It goes on");
  });
  return answer.promise.exclusiveJoin(kj::mv(late));
}

void Session::openGate() {
  if (gateAnswer != nullptr) {
    gateAnswer = nullptr;
    ++answersToIgnore;
  }
  link->send([](control::ToSession::Builder message) { message.setOpenGate(); });
}

void Session::askForObjects() {
  if (relayed) link->send([](control::ToSession::Builder message) { message.setTellObjects(); });
}

kj::Promise<void> Session::approach(std::string address, std::string token) {
  if (relayed) {
    link->send([&](control::ToSession::Builder message) {
      auto approach = message.initApproach();
      approach.setNode(reader(address));
      approach.setToken(kj::StringPtr(token.c_str(), token.size()).asBytes());
    });
    return kj::READY_NOW;
  }
  auto answer = kj::newPromiseAndFulfiller<uint64_t>();
  gateAnswer = kj::mv(answer.fulfiller);
  asked = "move to another host";
  link->send([](control::ToSession::Builder message) { message.initApproach(); });
  auto late = io.provider->getTimer().afterDelay(acceptLimit).then([this]() -> uint64_t {
    fail("program " + std::to_string(pid) + " did not answer in 30 s: is it stopped?");
  });
  auto answered = answer.promise.exclusiveJoin(kj::mv(late)).attach(kj::defer([this] {
    if (gateAnswer == nullptr) return;
    gateAnswer = nullptr;  // given up: a late answer must not count for the next request
    ++answersToIgnore;
  }));
  return answered.then([this, address = std::move(address), token = std::move(token)](uint64_t) {
    auto relay = startSuccessorRelay(address, directory->path(), token);
    successor = kj::heap<kj::AutoCloseFd>(kj::mv(relay.connection));
    processes.adopt(relay.starter);
  });
}

void Session::move() {
  isMoving = true;
  link->send([](control::ToSession::Builder message) { message.setMoving(); });
  if (successor.get() == nullptr) return;
  telling = link->flushed()
                .then([this] {
                  const char met = 1;
                  KJ_SYSCALL(write(*successor, &met, 1));
                })
                .eagerlyEvaluate([](kj::Exception&&) {});  // if it has ended, the target reports that
}

// A program that has ended, or belongs to another daemon, does not answer any more.
kj::Promise<bool> Session::stay() {
  auto answer = kj::newPromiseAndFulfiller<uint64_t>();
  gateAnswer = kj::mv(answer.fulfiller);
  link->send([](control::ToSession::Builder message) { message.setStay(); });
  auto stays = answer.promise.then([this](uint64_t) {
    isMoving = false;
    return true;
  });
  return stays.exclusiveJoin(gone().then([] { return false; }, [](kj::Exception&&) { return false; }));
}

kj::Promise<void> Session::rewrite() {
  auto answer = kj::newPromiseAndFulfiller<void>();
  rewriting = kj::mv(answer.fulfiller);
  link->send([](control::ToSession::Builder message) { message.setRewrite(); });
  auto late = io.provider->getTimer().afterDelay(acceptLimit).then([this] {
    fail("the virtual machine of guest " + place.guest + " did not answer in 30 s: is it stopped?");
  });
  return answer.promise.exclusiveJoin(kj::mv(late));
}

kj::Promise<void> Session::leave() {
  link->send([](control::ToSession::Builder message) { message.setLeft(); });
  return io.provider->getTimer().afterDelay(acceptLimit).then([this] {
    fail("the process of session " + id + " did not release the memory of guest " + place.guest + " in 30 s");
  });
}

kj::Promise<void> Session::park() {
  auto answer = kj::newPromiseAndFulfiller<void>();
  parking = kj::mv(answer.fulfiller);
  link->send([](control::ToSession::Builder message) { message.setPark(); });
  auto late = io.provider->getTimer().afterDelay(acceptLimit).then([this] {
    fail("program " + std::to_string(pid) + " did not disconnect from this node in 30 s: is it stopped?");
  });
  return answer.promise.exclusiveJoin(kj::mv(late));
}

kj::Promise<uint64_t> Session::offer(bool comesWithMachine) {
  auto answer = kj::newPromiseAndFulfiller<uint64_t>();
  acceptance = kj::mv(answer.fulfiller);
  link->send([this](control::ToSession::Builder message) {
    auto opened = message.initOpened();
    opened.setSession(capnp::Text::Reader(id.c_str(), id.size()));
    opened.setDirectory(capnp::Text::Reader(directory->path().c_str(), directory->path().size()));
  });
  const auto limit = comesWithMachine ? machineLimit : acceptLimit;
  return answer.promise.exclusiveJoin(io.provider->getTimer().afterDelay(limit).then([=, this]() -> uint64_t {
    if (comesWithMachine)
      fail("the virtual machine of guest " + place.guest + " does not run here: its program did not answer in 60 s");
    fail("program " + std::to_string(pid) + " did not accept its session in 30 s: is it stopped?");
  }));
}

void Session::requireIdle() {
  if (!operation.isEmpty()) refuseAsBusy();
}

void Session::refuseAsBusy() const {
  fail("session " + id + " is being suspended, resumed or migrated already; wait until that has ended");
}

void Session::interrupt(const std::string& why) {
  operation.cancel(
      kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::heapString(why.data(), why.size())));
}

void Session::describe(control::SessionInfo::Builder info) const {
  auto reader = [](const std::string& text) { return capnp::Text::Reader(text.c_str(), text.size()); };
  info.setId(reader(id));
  info.setName(reader(name));
  info.setPid(pid);
  info.setState(state);
  info.setProgram(reader(program));
  info.setDirectory(reader(directory->path()));
  info.setOpenedSeconds(openedSeconds);
  info.setRelayed(relayed);
  if (place.exists()) {
    auto where = info.initPlace();
    where.setGuest(reader(place.guest));
    where.setSlot(place.slot);
    where.setClaim(place.claim);
    where.setFileBytes(place.fileBytes);
  }
  KJ_IF_MAYBE (process, worker) {
    info.setDevice(reader(device));
    info.setWorkerPid((*process)->pid());
    auto images = info.initImages();
    auto& counted = (*process)->counted();
    images.setSent(counted.images.sent);
    images.setSentBytes(counted.images.sentBytes);
    images.setFound(counted.images.found);
    images.setFoundBytes(counted.images.foundBytes);
    auto launches = info.initLaunches();
    launches.setAll(counted.launches.sum(&LaunchCounters::OfGpu::all));
    launches.setFolded(counted.launches.sum(&LaunchCounters::OfGpu::folded));
  }
  if (state == control::State::SUSPENDED) info.setSnapshot(reader(snapshot));
}

std::string newSessionId() {
  // Crockford's alphabet: without i, l, o and u, which are misread or form unwanted words.
  static constexpr char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
  unsigned char random[8];
  KJ_SYSCALL(getrandom(random, sizeof(random), 0));
  std::string id;
  id += alphabet[10 + random[0] % 22];  // begins with a letter, so that no id looks like a pid
  for (int i = 1; i < 8; ++i) id += alphabet[random[i] % 32];
  return id;
}

}  // namespace vgpu::daemon
