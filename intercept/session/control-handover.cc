// How a suspended session changes hands: a daemon connects to resume it, or calls the parked program, which has no daemon.
#include <kj/debug.h>
#include <poll.h>
#include <sys/socket.h>

#include <utility>

#include "intercept/session/program-control.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::client {
namespace {

bool isReadable(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

}  // namespace

// Releases everything that the program has of the node, the connection last.
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

// Puts the session, as it was suspended, into another directory. An earlier call may have put it into one where nobody resumed it.
void ProgramControl::attach(const ParkingPlace::Call& call) {
  if (call.session != opened.id() && !givenFiles.isEmpty())
    fail("it shares host memory with other processes, which a copy would share too: it cannot be copied");
  leaveNode();
  KJ_ON_SCOPE_FAILURE(leaveNode());
  opened.enter(call.directory, call.session);
  served->enterFiles(call.directory);
  listener = opened.listen();
  phase = Phase::suspended;
  place->attached();
}

void ProgramControl::serveListener() {
  // Handles pending messages of an earlier daemon first: it may have given up its resume.
  while (offer && isReadable(offer->fd())) settle(offer->serve());
  int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;  // the peer gave up, or no descriptors are left: no reply
  kj::AutoCloseFd peer(fd);
  // An error of an unknown peer only ends that peer's connection.
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
  // The new daemon may be on another host. If the program has agreed to end the sharing of pinned memory, that happens now.
  if (phase == Phase::moving && isApart) served->leaveHost();
  faultPoint("program.reattach-accepted");
  opened.introduce(candidate, givenFiles.all());
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
  // Errors are ignored: if the previous daemon has ended, it needs no message.
  kj::runCatchingExceptions(
      [&] { send(*previous, [](control::ToNode::Builder farewell) { farewell.setMoved(); }); });
}

}  // namespace vgpu::client
