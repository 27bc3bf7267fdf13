#include "intercept/session/program-control.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <poll.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "intercept/session/background-thread.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::client {
namespace {

using std::chrono::seconds;

// How long a program whose gate is closed waits for its snapshot to be resumed after its daemon has ended: time for a person to start
// another daemon. VGPU_REATTACH_LIMIT, in seconds, overrides it.
constexpr seconds reattachLimit{300};
constexpr size_t stackBytes = size_t{512} << 10;

// `body`'s result, or the description of the exception that it throws.
template <typename Body>
std::string reasonAgainst(Body&& body) {
  std::string reason;
  auto caught = kj::runCatchingExceptions([&] { reason = body(); });
  KJ_IF_MAYBE (exception, caught) {
    reason = exception->getDescription().cStr();
  }
  return reason;
}

// How often a parked program checks for a daemon's call: a file in memory notifies nobody.
constexpr int parkedMilliseconds = 10;

}  // namespace

std::chrono::seconds ProgramControl::reattachWish() {
  const char* wish = std::getenv("VGPU_REATTACH_LIMIT");
  return wish == nullptr ? reattachLimit : seconds(std::strtol(wish, nullptr, 10));
}

ProgramControl::ProgramControl(const OpenRequest& request) : opened(request), reattachWait(reattachWish()) {
  connection.emplace(opened.open(wake.fd()));
  listener = opened.listen();
}

// A forked child has a copy of this object but not its thread, and must not use its connections.
ProgramControl::~ProgramControl() noexcept {
  if (servingProcess != getpid()) return;
  wake.raise();
  pthread_join(thread, nullptr);
}

// fork() copies descriptors before memory: a descriptor that the control thread opened in between is not open here.
void ProgramControl::leave() {
  auto isOpen = [](int fd) { return fcntl(fd, F_GETFD) >= 0; };
  if (isOpen(listener)) listener = nullptr;
  if (connection && isOpen(connection->fd())) connection->close();
  givenFiles.leave();
}

void ProgramControl::serve(SessionControl& session) {
  served = &session;
  SignalsBlocked whileStarting;  // the control thread inherits the mask: the program's handlers run on its own threads
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stackBytes);
  int error = pthread_create(&thread, &attributes, main, this);
  // A program with much thread-local storage needs a larger stack than ours: uses the default size then.
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
                       {offer ? offer->fd() : -1, POLLIN, 0},
                       {phase == Phase::running ? givenFiles.fd() : -1, POLLIN, 0}};
    if (poll(polled, std::size(polled), millisecondsLeft()) < 0) {
      if (errno == EINTR) continue;
      return disconnect(std::string("poll: ") + std::strerror(errno));
    }
    if (polled[0].revents != 0) return;
    if (polled[2].revents != 0) serveConnection();
    if (offer && polled[4].revents != 0) settle(offer->serve());  // stay() may have ended it
    if (polled[1].revents != 0) serveListener();  // after the others: a connection that has ended must not block a new one
    if (polled[3].revents != 0) askRenewal();
    if (polled[5].revents != 0) tellFiles();
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
  lose("its vgpud ended while this program was being suspended, and it was not resumed since");
}

void ProgramControl::lose(const std::string& why, const std::string& toWaiting) {
  phase = Phase::lost;
  served->lose(why);
  renewal.finish(toWaiting);
  givenFiles.lose();
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
      return askRenewal();  // a failed suspend may have delayed it
    case control::ToSession::RENEWAL_FAILED:
      return renewal.finish(text(message.getRenewalFailed()));
    case control::ToSession::SUSPENDED:
    case control::ToSession::SUSPENDED_IN_MEMORY:
      if (phase != Phase::gateClosed && !isInMemory) fail("vgpud reports that the session is suspended, but its gate is open");
      phase = Phase::suspended;
      isInMemory = message.isSuspendedInMemory();
      return;
    case control::ToSession::MOVING:
      if (phase != Phase::gateClosed) fail("vgpud reports that the session migrates, but its gate is open");
      phase = Phase::moving;
      return;
    case control::ToSession::APPROACH:
      return comeApart();
    case control::ToSession::STAY:
      return stay();
    case control::ToSession::PARK:
      return park();
    case control::ToSession::LOST:
      return lose(text(message.getLost()), text(message.getLost()));
    default:
      fail("vgpud sent an unexpected message");
  }
}

void ProgramControl::closeGate() {
  uint64_t position = 0;
  std::string refusal = phase == Phase::running ? "" : "the gate is closed already, or the session is lost";
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
  std::string refusal = phase == Phase::running ? "" : "the session is being suspended, or is lost";
  if (refusal.empty()) refusal = reasonAgainst([&] { return served->comeApart([this] { return isSpokenTo(); }); });
  isApart = refusal.empty();
  send(*connection,
       [&](control::ToNode::Builder answer) { refusal.empty() ? answer.setApart() : answer.setRefused(reader(refusal)); });
}

// If the other daemon's worker has claimed the session, does nothing: that daemon's next message says so, and settle() sends `moved`.
void ProgramControl::stay() {
  if (phase != Phase::moving || (offer && !offer->withdraw())) return;
  offer.reset();
  phase = Phase::gateClosed;
  send(*connection, [](control::ToNode::Builder answer) { answer.initGateClosed(); });
}

// Whether the daemon has sent a message, or its connection has ended, since it made its last request. Before our reply it only sends a
// message if it cancels the request or the worker is lost.
bool ProgramControl::isSpokenTo() {
  pollfd polled[] = {{connection->fd(), POLLIN, 0}, {wake.fd(), POLLIN, 0}};
  return poll(polled, 2, 0) > 0;
}

// A suspended program needs no daemon, unless the daemon has the snapshot in its memory. If the gate was closed, a complete snapshot may
// exist that the daemon could not report before it ended. Otherwise the program has just lost its worker.
void ProgramControl::disconnect(const std::string& why) {
  connection.reset();
  if (phase == Phase::suspended && isInMemory && !offer) return loseMemory();  // with an offer, its end decides
  if (phase == Phase::suspended || phase == Phase::lost) return;
  if (phase == Phase::gateClosed || phase == Phase::moving) {
    phase = Phase::suspended;
    waitsUntil = std::chrono::steady_clock::now() + reattachWait;
    fprintf(stderr,
            "vgpu: vgpud ended while it was suspending this program, which now waits %lld s for its snapshot to be resumed\n",
            static_cast<long long>(reattachWait.count()));
    return;
  }
  lose("the connection to vgpud ended: " + why, why);
}

void ProgramControl::loseMemory() {
  lose("its snapshot was in the memory of its vgpud, which has ended, and was not on disk yet");
}

// While the gate is closed, a suspend is in progress; afterwards a resume brings a new worker, or the gate is opened.
void ProgramControl::askRenewal() {
  if (!renewal.isWanted()) return;
  if (phase == Phase::lost) return renewal.finish("the session is lost");
  if (phase != Phase::running) return;
  renewal.setAsked();
  send(*connection, [](control::ToNode::Builder message) { message.setRenew(); });
}

// While the session is not running, changes wait: the daemon that resumes it gets all files (OpenedSession::introduce), and then the
// changes since a second time.
void ProgramControl::tellFiles() {
  if (phase != Phase::running) return;
  auto changes = givenFiles.takeChanges();
  auto caught = kj::runCatchingExceptions([&] {
    for (auto& change : changes) change.file != nullptr ? give(*connection, *change.file) : takeBack(*connection, change.name);
  });
  KJ_IF_MAYBE (exception, caught) {
    return disconnect(exception->getDescription().cStr());
  }
  changes.clear();  // the thread that gave a file now holds the last reference to it
  givenFiles.setTold();
}

std::unique_ptr<Control> Control::open(const OpenRequest& request) { return std::make_unique<ProgramControl>(request); }

}  // namespace vgpu::client
