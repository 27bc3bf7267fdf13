#include "intercept/session/control.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "intercept/session/background-thread.h"
#include "intercept/session/control-messages.h"
#include "intercept/session/event-descriptor.h"
#include "intercept/session/opened-session.h"
#include "intercept/session/renewal.h"
#include "intercept/session/resume-offer.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/parked-program.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::client {
namespace {

using std::chrono::seconds;

// How long a program whose gate is closed waits for its snapshot to be resumed after its daemon has ended: time for a person to
// start another one. VGPU_REATTACH_LIMIT, in seconds, overrides it.
constexpr seconds reattachLimit{300};
constexpr size_t stackBytes = size_t{512} << 10;

seconds reattachWish() {
  const char* wish = std::getenv("VGPU_REATTACH_LIMIT");
  return wish == nullptr ? reattachLimit : seconds(std::strtol(wish, nullptr, 10));
}

bool isOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

bool isReadable(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

// What `body` returns, or the reason of its exception.
template <typename Body>
std::string reasonAgainst(Body&& body) {
  std::string reason;
  auto caught = kj::runCatchingExceptions([&] { reason = body(); });
  KJ_IF_MAYBE (exception, caught) {
    reason = exception->getDescription().cStr();
  }
  return reason;
}

// The state of the gate. moving: it is closed, and another daemon may take the session, as if it were suspended, until its own
// says that it stays. parked: it is suspended, and has nothing of a node; it can be called to one until it runs again. A lost
// session stays connected, so that `vgpuctl ps` can show it until the program ends.
enum class Phase { running, gateClosed, moving, suspended, parked, lost };

// How often a parked program looks whether a daemon has called: a file in memory wakes nobody.
constexpr int parkedMilliseconds = 10;

class ProgramControl final : public Control {
 public:
  explicit ProgramControl(const OpenRequest& request)
      : opened(request), reattachWait(reattachWish()) {
    connection.emplace(opened.open(wake.fd()));
    listener = opened.listen();
  }

  // A child made by fork() has a copy of this object, but not its thread, and must not use its connections.
  ~ProgramControl() noexcept override {
    if (servingProcess != getpid()) return;
    wake.raise();
    pthread_join(thread, nullptr);
  }

  // fork() copies the descriptors first and the memory then: what the control thread has opened between the two is not open here.
  void leave() override {
    if (isOpen(listener)) listener = nullptr;
    if (connection && isOpen(connection->fd())) connection->close();
  }

  const MemoryFile& segment() const override { return opened.segment(); }
  const MemoryFile& hostArena() const override { return opened.hostArena(); }
  const std::string& session() const override { return opened.id(); }
  const std::string& directory() const override { return opened.directory(); }
  void serve(SessionControl& served) override;
  std::string renew() override { return renewal.await(); }

 private:
  static void* main(void* self);
  void run();
  void serveConnection();
  void handle(control::ToSession::Reader message);
  void closeGate();
  void comeApart();
  void stay();
  bool isSpokenTo();
  void disconnect(const std::string& why);
  void loseMemory();
  void askRenewal();
  void park();
  void lookForCall();
  void attach(const ParkingPlace::Call& call);
  void leaveNode();
  void serveListener();
  void meet(kj::AutoCloseFd peer);
  void settle(ResumeOffer::State state);
  int millisecondsLeft() const;
  void endWhatIsLate();

  EventDescriptor wake;
  OpenedSession opened;
  kj::AutoCloseFd listener;
  Renewal renewal;

  SessionControl* served = nullptr;
  pthread_t thread{};
  pid_t servingProcess = 0;

  // Used by the control thread alone, once it runs.
  std::optional<ControlChannel> connection;
  Phase phase = Phase::running;
  bool isApart = false;              // the program shares no host memory any more
  bool isInMemory = false;           // the snapshot, while suspended: the daemon's memory has it
  std::optional<ResumeOffer> offer;  // while suspended
  std::optional<ParkingPlace> place;  // from when it was parked until it runs again
  const seconds reattachWait;
  std::optional<std::chrono::steady_clock::time_point> waitsUntil;  // suspended, and it is unknown to which directory
};

void ProgramControl::serve(SessionControl& session) {
  served = &session;
  SignalsBlocked whileStarting;  // inherited by the thread: the program's handlers run on its own threads
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stackBytes);
  int error = pthread_create(&thread, &attributes, main, this);
  // A program with much thread-local storage needs a larger stack than ours: then take the default.
  if (error == EINVAL) error = pthread_create(&thread, nullptr, main, this);
  pthread_attr_destroy(&attributes);
  if (error != 0) fail(std::string("the control thread cannot be started: ") + std::strerror(error));
  servingProcess = getpid();
}

void* ProgramControl::main(void* self) {
  pthread_setname_np(pthread_self(), "vgpu-control");
  static_cast<ProgramControl*>(self)->run();
  return nullptr;
}

void ProgramControl::run() {
  while (true) {
    pollfd polled[] = {{wake.fd(), POLLIN, 0},
                       {listener, POLLIN, 0},
                       {connection ? connection->fd() : -1, POLLIN, 0},
                       {renewal.fd(), POLLIN, 0},
                       {offer ? offer->fd() : -1, POLLIN, 0}};
    if (poll(polled, 5, millisecondsLeft()) < 0) {
      if (errno == EINTR) continue;
      return disconnect(std::string("poll: ") + std::strerror(errno));
    }
    if (polled[0].revents != 0) return;
    if (polled[2].revents != 0) serveConnection();
    if (offer && polled[4].revents != 0) settle(offer->serve());  // stay() may have ended it
    if (polled[1].revents != 0) serveListener();  // after the others: a connection that has ended does not block a new one
    if (polled[3].revents != 0) askRenewal();
    if (place) lookForCall();
    endWhatIsLate();
  }
}

int ProgramControl::millisecondsLeft() const {
  auto until = offer ? std::optional(offer->deadline()) : waitsUntil;
  if (!until) return place ? parkedMilliseconds : -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::min<int64_t>(std::max<int64_t>(left, 0), place ? parkedMilliseconds : INT_MAX));
}

void ProgramControl::endWhatIsLate() {
  if (millisecondsLeft() != 0) return;
  if (offer) return settle(offer->expire());
  waitsUntil.reset();
  phase = Phase::lost;
  served->lose("its vgpud ended while this program was being suspended, and nobody has resumed it since");
  renewal.finish("the session is lost");
}

void ProgramControl::serveConnection() {
  auto caught = kj::runCatchingExceptions([this] {
    std::optional<ControlMessage> message = connection->receive(0, within(messageLimit));
    if (!message) return disconnect("vgpud has ended");
    handle(message->reader->getRoot<control::ToSession>());
  });
  KJ_IF_MAYBE (exception, caught) {
    disconnect(exception->getDescription().cStr());
  }
}

void ProgramControl::handle(control::ToSession::Reader message) {
  switch (message.which()) {
    case control::ToSession::CLOSE_GATE:
      return closeGate();
    case control::ToSession::OPEN_GATE:
      if (phase != Phase::gateClosed) return;
      phase = Phase::running;
      served->openGate();
      return askRenewal();  // after a failed suspend has delayed it
    case control::ToSession::RENEWAL_FAILED:
      return renewal.finish(text(message.getRenewalFailed()));
    case control::ToSession::SUSPENDED:
    case control::ToSession::SUSPENDED_IN_MEMORY:
      if (phase != Phase::gateClosed && !isInMemory) fail("vgpud says that the session is suspended, and its gate is open");
      phase = Phase::suspended;
      isInMemory = message.isSuspendedInMemory();
      return;
    case control::ToSession::MOVING:
      if (phase != Phase::gateClosed) fail("vgpud says that the session moves, and its gate is open");
      phase = Phase::moving;
      return;
    case control::ToSession::APPROACH:
      return comeApart();
    case control::ToSession::STAY:
      return stay();
    case control::ToSession::PARK:
      return park();
    case control::ToSession::LOST:
      phase = Phase::lost;
      served->lose(text(message.getLost()));
      return renewal.finish(text(message.getLost()));
    default:
      fail("vgpud sent a message that has no place here");
  }
}

void ProgramControl::closeGate() {
  uint64_t position = 0;
  std::string refusal = phase == Phase::running ? "" : "the gate is closed already, or the session lost";
  if (refusal.empty()) {
    faultPoint("program.gate-closing");
    refusal = reasonAgainst([&] {
      position = served->closeGate([this] { return isSpokenTo(); });
      return "";
    });
  }
  if (!refusal.empty()) {
    return send(*connection, [&](control::ToNode::Builder answer) { answer.setRefused(reader(refusal)); });
  }
  phase = Phase::gateClosed;
  faultPoint("program.gate-closed");
  send(*connection, [&](control::ToNode::Builder answer) { answer.initGateClosed().setPosition(position); });
}

void ProgramControl::comeApart() {
  std::string refusal = phase == Phase::running ? "" : "the session is being suspended, or lost";
  if (refusal.empty()) refusal = reasonAgainst([&] { return served->comeApart([this] { return isSpokenTo(); }); });
  isApart = refusal.empty();
  send(*connection,
       [&](control::ToNode::Builder answer) { refusal.empty() ? answer.setApart() : answer.setRefused(reader(refusal)); });
}

// If the other daemon's worker has claimed the session, that daemon's next message says so, and settle() answers with `moved`.
void ProgramControl::stay() {
  if (phase != Phase::moving || (offer && !offer->withdraw())) return;
  offer.reset();
  phase = Phase::gateClosed;
  send(*connection, [](control::ToNode::Builder answer) { answer.initGateClosed(); });
}

// Lets go of all that it has of the node, the connection last.
void ProgramControl::park() {
  std::string refusal;
  if (phase != Phase::suspended || isInMemory) refusal = "it is not suspended to disk";
  if (offer) refusal = "it is being resumed by another vgpud";
  if (opened.hostArena().bytes() == 0) refusal = "its GPU is on another host";
  if (!refusal.empty()) return send(*connection, [&](control::ToNode::Builder answer) { answer.setRefused(reader(refusal)); });
  place.emplace(opened.id());
  leaveNode();
  faultPoint("process.letting-go");
  kj::runCatchingExceptions([&] { send(*connection, [](control::ToNode::Builder answer) { answer.setParked(); }); });
  connection.reset();
}

void ProgramControl::lookForCall() {
  auto caught = kj::runCatchingExceptions([&] {
    auto call = place->called();
    if (!call) return;
    if (offer) fail("it is being resumed by another vgpud");
    attach(*call);
  });
  KJ_IF_MAYBE (exception, caught) {
    place->failed(exception->getDescription().cStr());
  }
}

void ProgramControl::leaveNode() {
  phase = Phase::parked;
  listener = nullptr;
  opened.leave();
  served->leaveFiles();
}

// As it was when it had been suspended, in another directory. It may have been called to one before, where nobody had it go on.
void ProgramControl::attach(const ParkingPlace::Call& call) {
  leaveNode();
  KJ_ON_SCOPE_FAILURE(leaveNode());
  opened.enter(call.directory, call.session);
  served->enterFiles(call.directory);
  listener = opened.listen();
  phase = Phase::suspended;
  place->attached();
}

// Whether the daemon has sent a message, or its connection has ended, since we began its last request. Before our reply it sends
// a message only if it cancels the request or the worker is lost.
bool ProgramControl::isSpokenTo() {
  pollfd polled[] = {{connection->fd(), POLLIN, 0}, {wake.fd(), POLLIN, 0}};
  return poll(polled, 2, 0) > 0;
}

// While suspended, the program does not need a daemon, unless that has the snapshot in its memory. If it has closed its gate,
// there may be a complete snapshot that the daemon could not report before it ended. Otherwise the program has just lost its
// worker.
void ProgramControl::disconnect(const std::string& why) {
  connection.reset();
  if (phase == Phase::suspended && isInMemory && !offer) return loseMemory();  // else the offer's end says what becomes of it
  if (phase == Phase::suspended || phase == Phase::lost) return;
  if (phase == Phase::gateClosed || phase == Phase::moving) {
    phase = Phase::suspended;
    waitsUntil = std::chrono::steady_clock::now() + reattachWait;
    fprintf(stderr,
            "vgpu: vgpud ended while it suspended this program, which waits %lld s for its snapshot to be resumed\n",
            static_cast<long long>(reattachWait.count()));
    return;
  }
  phase = Phase::lost;
  served->lose("the connection to vgpud ended: " + why);
  renewal.finish(why);
}

void ProgramControl::loseMemory() {
  phase = Phase::lost;
  served->lose("its snapshot was in the memory of its vgpud, which has ended, and was not on disk yet");
  renewal.finish("the session is lost");
}

// While the gate is closed a suspend is in progress; afterwards the resume brings a new worker, or the gate is opened.
void ProgramControl::askRenewal() {
  if (!renewal.isWanted()) return;
  if (phase == Phase::lost) return renewal.finish("the session is lost");
  if (phase != Phase::running) return;
  renewal.setAsked();
  send(*connection, [](control::ToNode::Builder message) { message.setRenew(); });
}

void ProgramControl::serveListener() {
  // All that an earlier daemon has said comes first: it may have given the resume up.
  while (offer && isReadable(offer->fd())) settle(offer->serve());
  int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;  // it gave up, or we are out of descriptors: it gets no reply
  kj::AutoCloseFd peer(fd);
  // Any error of an unknown peer ends its connection and changes nothing here.
  auto caught = kj::runCatchingExceptions([&] {
    if (isTrusted(peerOf(peer))) meet(kj::mv(peer));
  });
  KJ_IF_MAYBE (exception, caught) {
    KJ_LOG(INFO, "a daemon did not resume this program", *exception);
  }
}

// A daemon has connected to the program. Only a suspended session can change hands, and to one daemon at a time.
void ProgramControl::meet(kj::AutoCloseFd peer) {
  ControlChannel candidate(kj::mv(peer), wake.fd());
  std::optional<ControlMessage> first = candidate.receive(0, within(messageLimit));
  if (!first) return;
  auto request = first->reader->getRoot<control::ToSession>();
  if (!request.isReattach()) return;
  std::string wanted = text(request.getReattach());
  std::string refusal;
  if (wanted != opened.id()) refusal = "this program's session is " + opened.id() + ", not " + wanted;
  if (phase != Phase::suspended && phase != Phase::moving) refusal = "session " + opened.id() + " is not suspended";
  if (offer) refusal = "session " + opened.id() + " is being resumed by another vgpud";
  if (!refusal.empty()) {
    return send(candidate, [&](control::ToNode::Builder answer) { answer.setRefused(reader(refusal)); });
  }
  // Perhaps from another host, and what has been said of the pinned memory of one holds for both.
  if (phase == Phase::moving && isApart) served->leaveHost();
  faultPoint("program.reattach-accepted");
  opened.introduce(candidate);
  offer.emplace(std::move(candidate), *served);
}

void ProgramControl::settle(ResumeOffer::State state) {
  if (state == ResumeOffer::State::waiting) return;
  ResumeOffer ended = std::move(*offer);
  offer.reset();
  if (state == ResumeOffer::State::over) {
    if (isInMemory && !connection) loseMemory();
    return;
  }
  phase = Phase::running;
  isInMemory = false;
  waitsUntil.reset();
  place.reset();
  auto previous = std::exchange(connection, std::optional<ControlChannel>(ended.release()));
  if (state == ResumeOffer::State::lost) return disconnect(ended.reason());
  served->openGate();
  renewal.finish("");
  if (!previous) return;
  // It may have ended: then no message is needed.
  kj::runCatchingExceptions(
      [&] { send(*previous, [](control::ToNode::Builder farewell) { farewell.setMoved(); }); });
}

}  // namespace

std::unique_ptr<Control> Control::open(const OpenRequest& request) { return std::make_unique<ProgramControl>(request); }

}  // namespace vgpu::client
