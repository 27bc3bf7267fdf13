// How the relay's connection to the node is made and replaced, also its additional connections, and the relay that replaces this one.
#include <kj/debug.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "tools/common/reason.h"
#include "tools/common/successor.h"
#include "tools/relay/guest-device.h"
#include "tools/relay/node-connection.h"
#include "tools/relay/program-side.h"
#include "tools/relay/relay-messages.h"
#include "vgpu/base/fail.h"

namespace vgpu::relay {
namespace {

constexpr std::chrono::seconds lanesRetry{1};
constexpr unsigned mostTimesAsked = 5;

}  // namespace

std::unique_ptr<ByteStream> ProgramSide::reachHost() {
  if (node.transport != Transport::ivshmem) return reachNode(node, {GreetingFor::session, token, 0, ++attempts}).stream;
  guest = claimSlot(openGuestDevice(node));
  return std::make_unique<GuestStream>(*guest, GuestFile::Side::guest);
}

void ProgramSide::follow() { use(reachNode(node, {GreetingFor::arrival, token, 0, ++attempts}).stream); }

void ProgramSide::startSuccessor(control::Approach::Reader approach) {
  auto caught = kj::runCatchingExceptions([&] {
    if (guest) fail("its program is in a virtual machine: the session moves with the machine");
    auto shown = approach.getToken();
    if (shown.size() != token.size()) fail("the node sent a token of the wrong size");
    std::string shownToken(shown.begin(), shown.end());
    successor = startSuccessorRelay(approach.getNode().cStr(), stateDirectory, shownToken).connection;
  });
  KJ_IF_MAYBE (exception, caught) {  // if nobody connects to the other node, that node reports it
    std::fprintf(stderr, "vgpu-relay: this session cannot move: %s\n", reasonOf(*exception).c_str());
  }
}

// The predecessor says that the program may be contacted, or has ended.
void ProgramSide::servePredecessor() {
  char met;
  if (read(predecessor, &met, 1) != 1) return end();
  mayMeet = true;
  if (!meeting) return;
  auto [channel, bytes] = std::move(*meeting);
  meeting.reset();
  meetProgram(channel, bytes);
}

// Makes additional connections when the session has moved many bytes, and after each replacement of its connection: then at least one is
// required, because bytes to be sent beside messages have no other way.
void ProgramSide::tendLanes() {
  if (laneWish.count == 0 || (!hasHadLanes && link.bulkBytes() < laneWish.from) || !owns()) return;
  if (lanes.hasReady()) {
    hasHadLanes = true;
    return;
  }
  const auto now = Clock::now();
  if (hasHadLanes && now - lanesReadyAt >= reconnectLimit())
    return giveUp("cannot make a further connection: " + lanes.whyNotReady());
  if (lanes.count() != 0 || now - lanesTriedAt < lanesRetry) return;
  lanesTriedAt = now;
  for (unsigned i = 0; i < laneWish.count; ++i) startLane(lanes.add(), segmentFile, node, {GreetingFor::lane, token, connection});
}

std::unique_ptr<ByteStream> ProgramSide::followHost() {
  if (begun == nullptr || begun->isOutdated()) {
    begun = std::make_unique<GuestStream>(*guest, GuestFile::Side::guest);
    begun->sayReceived(link.receivedMessages());
  }
  auto received = begun->hearReceived();
  if (!received) return nullptr;
  guest->begun = begun->number();
  if (*received == GuestStream::anotherLink) {
    link = Link();
    gateClosed.reset();
    former = std::exchange(channels, {});
  } else {
    link.restart(*received);
  }
  return std::move(begun);
}

// The host that was asked does not serve this machine any more: the machine has moved, before the session was opened. The new host gets a
// new request, with a new slot.
std::unique_ptr<ByteStream> ProgramSide::askAgain() {
  if (++timesAsked == mostTimesAsked) fail("no vgpud of the host opens the session");
  releaseSlot(*guest);
  guest.reset();
  guest = claimSlot(openGuestDevice(node));
  link = Link();
  link.send(static_cast<uint16_t>(RelayMessage::open), bytesOf(asked));
  return std::make_unique<GuestStream>(*guest, GuestFile::Side::guest);
}

std::unique_ptr<ByteStream> ProgramSide::reconnect() {
  if (guest && isAsking() && !isOutdated()) return askAgain();
  if (guest) return followHost();
  if (!owns()) fail("the session does not move");
  auto reached = reachNode(node, {GreetingFor::session, token, link.receivedMessages(), ++attempts});
  link.restart(reached.answer.received);
  connection = reached.answer.connection;
  lanesTriedAt = {};
  lanesReadyAt = Clock::now();
  return std::move(reached.stream);
}

}  // namespace vgpu::relay
