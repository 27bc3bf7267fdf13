// How the relay's connections begin, end and are replaced: those of its program, of that program's virtual machine, lanes, and daemons.
#include <kj/debug.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "tools/common/reason.h"
#include "tools/relay/node-side.h"
#include "tools/relay/relay-messages.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::relay {
namespace {

constexpr size_t mostLanes = 16;
constexpr std::chrono::seconds answerLimit{1};  // for a machine that has been loaded

// Accepts a connection if its peer belongs to this user. An error of `work` does not affect the session.
template <typename Work>
void acceptTrusted(int acceptor, Work work) {
  kj::AutoCloseFd from(accept4(acceptor, nullptr, nullptr, SOCK_CLOEXEC));
  auto ignored = kj::runCatchingExceptions([&] {
    if (from.get() >= 0 && isTrusted(peerOf(from))) work(kj::mv(from));
  });
}

// Passes a greeting with a descriptor between the process that has accepted a new connection, or a lane's, and the relay that has the
// session.
void passGreeting(ControlChannel& channel, const Greeting& greeting, int descriptor) {
  capnp::MallocMessageBuilder message;
  auto bytes = std::as_bytes(std::span(&greeting, 1));
  std::memcpy(message.initRoot<capnp::Data>(bytes.size()).begin(), bytes.data(), bytes.size());
  channel.send(message, kj::arrayPtr(&descriptor, 1), Clock::now() + messageLimit);
}

struct PassedGreeting {
  Greeting greeting;
  kj::AutoCloseFd descriptor;
};

std::optional<PassedGreeting> takeGreeting(ControlChannel& channel) {
  auto message = channel.receive(1, Clock::now() + messageLimit);
  if (!message || message->descriptors.size() != 1) return std::nullopt;
  auto bytes = message->reader->getRoot<capnp::Data>();
  PassedGreeting passed{{}, kj::mv(message->descriptors[0])};
  if (bytes.size() != sizeof passed.greeting) return std::nullopt;
  std::memcpy(&passed.greeting, bytes.begin(), bytes.size());
  return passed;
}

}  // namespace

// Forwards the greeting as received; the relay that has the session answers it.
bool NodeSide::passOn(int connection, const std::string& runDirectory, const Greeting& greeting) {
  kj::AutoCloseFd relay;
  auto caught = kj::runCatchingExceptions([&] { relay = connectUnix(socketOf(runDirectory, greeting.token)); });
  if (caught != nullptr) return false;
  ControlChannel channel(kj::mv(relay));
  passGreeting(channel, greeting, connection);
  return true;
}

// Gives the relay the lane's other end; the relay answers with the session's memory.
std::unique_ptr<Lane> NodeSide::offerLane(const std::string& runDirectory, const Greeting& greeting) {
  std::unique_ptr<Lane> lane;
  auto ignored = kj::runCatchingExceptions([&] {
    ControlChannel relay(connectUnix(socketOf(runDirectory, greeting.token) + lanesSuffix));
    int ends[2];
    KJ_SYSCALL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
    passGreeting(relay, greeting, theirs);
    auto answer = relay.receive(1, Clock::now() + messageLimit);
    if (!answer || answer->descriptors.size() != 1) return;
    lane = std::make_unique<Lane>(kj::mv(ours), adoptMemory(answer->descriptors[0]));
  });
  return lane;
}

// From a process whose peer it has greeted and admitted to the node.
void NodeSide::takeLane() {
  acceptTrusted(laneAcceptor, [&](kj::AutoCloseFd from) {
    ControlChannel channel(kj::mv(from));
    auto offer = takeGreeting(channel);
    if (!offer || mirror == nullptr || isCut() || lanes.count() >= mostLanes) return;
    if (offer->greeting.received != connections) return;  // it belongs to an earlier connection
    const int memory[] = {segmentFile.fd()};
    capnp::MallocMessageBuilder message;
    message.initRoot<control::ToSession>().initOpened();
    channel.send(message, kj::arrayPtr(memory, 1), Clock::now() + messageLimit);
    lanes.add(kj::mv(offer->descriptor));
  });
}

// Replaces the present connection, broken or not: only the program's relay knows the token. A connection that the program's relay has given
// up meanwhile may arrive late, and its number of received messages is outdated.
void NodeSide::takeConnection() {
  acceptTrusted(acceptor, [&](kj::AutoCloseFd from) {
    ControlChannel channel(kj::mv(from));
    auto passed = takeGreeting(channel);
    if (!passed || passed->greeting.attempt <= latest.attempt) return;
    latest = passed->greeting;
    replacement = kj::mv(passed->descriptor);
  });
  if (replacement.get() >= 0) replaceConnection("another connection has replaced it");
}

// The machine was restored from a saved state, and its mailbox may be in that state.
void NodeSide::attach() {
  acceptTrusted(acceptor, [&](kj::AutoCloseFd from) {
    if (isArriving) return;
    begun = GuestStream::beginAnew(*guest);
    begun->sayReceived(link.receivedMessages());
    isAttaching = true;
    replaceConnection("its mailbox was reset");
    const char done = 1;
    KJ_SYSCALL(write(from, &done, 1));
  });
}

// When the machine sends anything, it has been loaded and runs.
std::unique_ptr<ByteStream> NodeSide::meetMachine() {
  if (openedMessage == nullptr) return nullptr;
  if (begun != nullptr && begun->hearReceived()) {
    isArriving = false;
    send(link, RelayMessage::reattach, OnChannel{0}, bytesOf(reattachMessage));
    return std::move(begun);
  }
  if (begun != nullptr && Clock::now() - begunAt < answerLimit) return nullptr;
  begun = GuestStream::beginHere(*guest, begun != nullptr);
  begun->sayReceived(GuestStream::anotherLink);
  begunAt = Clock::now();
  return nullptr;
}

// Follows the guest when it has said how many messages it has received. A machine that is loaded from disk contains earlier states of the
// mailbox than the last one. Until attach() is told that the machine is there, these are ignored, except the end of the session.
std::unique_ptr<ByteStream> NodeSide::followGuest() {
  if (!isAttaching) {
    const bool isOver = guest->words().released.load(std::memory_order_acquire) == guest->claim;
    if (isOver) fail("the machine has ended the session");
    return nullptr;
  }
  auto received = begun->hearReceived();
  if (!received) return nullptr;
  link.restart(*received);
  isAttaching = false;
  return std::move(begun);
}

std::unique_ptr<ByteStream> NodeSide::reconnect() {
  if (guest) return isArriving ? meetMachine() : followGuest();
  if (isArriving) fail("the session did not arrive");  // another node still has it
  if (replacement.get() < 0) return nullptr;
  auto connection = std::make_unique<PlainStream>(kj::mv(replacement));
  link.restart(latest.received);
  acceptGreeting(*connection, {link.receivedMessages(), ++connections}, Clock::now() + messageLimit);
  return connection;
}

// A daemon of this host has connected, to resume the session.
void NodeSide::takeDaemon() {
  acceptTrusted(reattach, [&](kj::AutoCloseFd from) {
    ControlChannel channel(kj::mv(from));
    auto message = channel.receive(0, Clock::now() + messageLimit);
    if (!message || !message->reader->getRoot<control::ToSession>().isReattach()) return;
    isStill = false;
    auto words = flatten<control::ToSession>(message->reader->getRoot<control::ToSession>());
    send(link, RelayMessage::reattach, OnChannel{++lastChannel}, bytesOf(words));
    channels.emplace(lastChannel, std::move(channel));
  });
}

}  // namespace vgpu::relay
