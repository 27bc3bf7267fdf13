#include "tools/relay/program-side.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "tools/common/reason.h"
#include "tools/relay/guest-device.h"
#include "tools/relay/relay-messages.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/text.h"
#include "vgpu/control/unix-socket.h"
#include "vgpu/objects/list-copy.h"
#include "vgpu/objects/record-store.h"
#include "vgpu/wire/handover.h"

namespace vgpu::relay {
namespace {

using std::chrono::seconds;

constexpr uint64_t idleSleep = 1'000'000'000;  // nanoseconds; bells and descriptors end the sleep

template <typename Fill>
void say(ControlChannel& channel, Fill&& fill, kj::ArrayPtr<const int> descriptors = nullptr) {
  capnp::MallocMessageBuilder message;
  fill(message.initRoot<control::ToSession>());
  channel.send(message, descriptors, Clock::now() + messageLimit);
}

}  // namespace

ProgramSide::ProgramSide(kj::AutoCloseFd connection, const Endpoint& node, std::string directory)
    : node(node), directory(std::move(directory)) {
  watchProgram(peerOf(connection).pid);
  channels.emplace(0u, ControlChannel(kj::mv(connection)));
}

ProgramSide::ProgramSide(const Endpoint& node, const SessionToken& token, std::string stateDirectory, kj::AutoCloseFd predecessor)
    : node(node), token(token), stateDirectory(std::move(stateDirectory)), predecessor(kj::mv(predecessor)) {
  watch(this->predecessor);
}

ProgramSide::~ProgramSide() {
  std::error_code ignored;
  if (guest) releaseSlot(*guest);
  if (!stateDirectory.empty() && owns()) std::filesystem::remove_all(stateDirectory, ignored);
}

void ProgramSide::watchProgram(pid_t pid) {
  if (program.get() >= 0) return;
  if (pid > 0) program = kj::AutoCloseFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (program.get() >= 0) watch(program);
}

bool ProgramSide::open() {
  ControlChannel& channel = channels.at(0);
  auto first = channel.receive(0, Clock::now() + messageLimit);
  if (!first || !first->reader->getRoot<control::ToNode>().isOpen()) return false;
  auto caught = kj::runCatchingExceptions([&] { use(reachHost()); });
  KJ_IF_MAYBE (exception, caught) {
    std::string why = reasonOf(*exception);
    say(channel, [&](control::ToSession::Builder message) { message.setRefused(reader(why)); });
    return false;
  }
  asked = flatten<control::ToNode>(first->reader->getRoot<control::ToNode>());
  link.send(static_cast<uint16_t>(RelayMessage::open), bytesOf(asked));
  return true;
}

void ProgramSide::take(const LinkMessage& message) {
  if (isSucceeded) return;
  if (mirror != nullptr && mirror->apply(message)) return;
  auto payload = message.payload;
  switch (static_cast<RelayMessage>(message.type)) {
    case RelayMessage::opened:
      return takeOpened(payload);
    case RelayMessage::control: {
      auto on = mirror::take<OnChannel>(payload);
      return takeControl(on.channel, payload);
    }
    case RelayMessage::reattach: {
      auto on = mirror::take<OnChannel>(payload);
      return takeReattach(on.channel, payload);
    }
    case RelayMessage::closed:
      return close(mirror::take<OnChannel>(payload).channel);
    default:
      fail("the node sent an unexpected message: " + std::to_string(message.type));
  }
}

// Makes the memory that a worker makes for a session of its own host.
void ProgramSide::takeOpened(std::span<const std::byte> bytes) {
  if (segment) fail("the node opened the session twice");
  asked = nullptr;
  ReceivedControl received(bytes);
  auto said = received.get<control::ToSession>();
  if (!said.isOpened()) fail("the node did not answer with a session");
  std::string id = said.getOpened().getSession().cStr();
  if (id.empty() || id.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz") != std::string::npos)
    fail("the node gave the session an invalid id");
  segmentFile = guest ? guest->segment() : Segment::create();
  segment.emplace(segmentFile);
  if (!guest) {
    mirror = std::make_unique<ProgramMirror>(*segment, link);
    bells = std::make_unique<BellThread>(mirror->bells());
    watch(bells->fd());
  }
  stateDirectory = directory + "/sessions/" + id;
  KJ_SYSCALL(mkdir(stateDirectory.c_str(), 0700), stateDirectory.c_str());
  const int memory[] = {segmentFile.fd()};  // without a host arena, because host memory is not shared
  say(
      channels.at(0),
      [&](control::ToSession::Builder message) {
        auto opened = message.initOpened();
        opened.setSession(reader(id));
        opened.setDirectory(reader(stateDirectory));
      },
      kj::arrayPtr(memory, 1));
}

void ProgramSide::takeControl(uint32_t channel, std::span<const std::byte> bytes) {
  auto found = channels.find(channel);
  if (found == channels.end()) return;  // the program has closed it
  ReceivedControl message(bytes);
  auto said = message.get<control::ToSession>();
  if (said.isApproach()) return startSuccessor(said.getApproach());
  if (said.isRewrite() && guest) return rewrite(channel);
  if (said.isTellObjects()) return tellObjects();
  if (said.isRefused()) asked = nullptr;
  if (said.isMoving()) isMoving = true;
  if (said.isOpenGate()) isMoving = false;
  if (said.isSuspended() || said.isSuspendedInMemory()) isSuspended = true;
  auto caught =
      kj::runCatchingExceptions([&] { message.pass<control::ToSession>(found->second, nullptr, Clock::now() + messageLimit); });
  if (caught != nullptr) passClosed(channel);
  const char met = 1;
  if (said.isMoving() && successor.get() >= 0 && write(successor, &met, 1) != 1) successor = nullptr;
}

// The program waits, and the host writes nothing more: the machine takes the present content along.
void ProgramSide::rewrite(uint32_t channel) {
  guest->file->rewrite(guest->slot, guest->locked);
  capnp::MallocMessageBuilder message;
  message.initRoot<control::ToNode>().setRewritten();
  auto words = capnp::messageToFlatArray(message);
  send(link, RelayMessage::control, OnChannel{channel}, bytesOf(words));
}

// The list as far as the program has written it. Without it the node makes fewer objects ahead.
void ProgramSide::tellObjects() {
  if (!segment || isMoving || isSuspended || gateClosed) return;
  kj::runCatchingExceptions([&] { sendObjects(); });
}

// A daemon on the node's host wants to resume the session: the program listens in its state directory.
void ProgramSide::takeReattach(uint32_t channel, std::span<const std::byte> bytes) {
  if (predecessor.get() < 0 || mayMeet) return meetProgram(channel, bytes);
  meeting.emplace(channel, std::vector<std::byte>(bytes.begin(), bytes.end()));
}

void ProgramSide::meetProgram(uint32_t channel, std::span<const std::byte> bytes) {
  isSuspended = false;
  auto caught = kj::runCatchingExceptions([&] {
    kj::AutoCloseFd socket = connectUnix(stateDirectory + "/" + reattachSocketName);
    watchProgram(peerOf(socket).pid);
    ControlChannel made(kj::mv(socket));
    ReceivedControl message(bytes);
    message.pass<control::ToSession>(made, nullptr, Clock::now() + messageLimit);
    channels.emplace(channel, std::move(made));
  });
  if (caught != nullptr) send(link, RelayMessage::closed, OnChannel{channel});
}

void ProgramSide::passClosed(uint32_t channel) {
  channels.erase(channel);
  if (gateClosed && gateClosed->channel == channel) gateClosed.reset();
  send(link, RelayMessage::closed, OnChannel{channel});
  if (channels.empty() && (program.get() < 0 || !owns())) end();
}

// The other end of the channel has ended: a vgpud, or its connection with the other relay.
void ProgramSide::close(uint32_t channel) {
  channels.erase(channel);
  if (!segment || !owns()) end();
}

// In the successor: the program's answer to `reattach`. It passes the memory that the predecessor has made.
void ProgramSide::adopt(ControlMessage& opened) {
  if (opened.descriptors.size() < 2) fail("the program has not passed its memory");
  segmentFile = MemoryFile::adopt(opened.descriptors[0].release(), 1, std::numeric_limits<int64_t>::max());
  segment.emplace(segmentFile);
  mirror = std::make_unique<ProgramMirror>(*segment, link);
  mirror->introduce();
  bells = std::make_unique<BellThread>(mirror->bells());
  watch(bells->fd());
}

// Claims the session for the node's worker: irrevocable for the program. Returns false if the program has withdrawn.
bool ProgramSide::claim(uint64_t handover) {
  if (!claimHandover(segment->header().handover, handover)) return false;
  unwatch(predecessor);
  predecessor = nullptr;
  return true;
}

void ProgramSide::serveChannel(uint32_t number) {
  std::optional<ControlMessage> received;
  auto caught = kj::runCatchingExceptions([&] { received = channels.at(number).receive(3, Clock::now() + messageLimit); });
  if (caught != nullptr || !received) return passClosed(number);
  auto message = received->reader->getRoot<control::ToNode>();
  auto words = flatten<control::ToNode>(message);
  if (message.isOpen() && !segment) adopt(*received);
  if (message.isAccepted() && !owns() && !claim(message.getAccepted())) return passClosed(number);
  if (message.isMoved() && isMoving) {
    send(link, RelayMessage::control, OnChannel{number}, bytesOf(words));
    isSucceeded = true;
    return end();
  }
  if (message.isGateClosed()) {
    isMoving = false;  // if it was to move, it stays
    gateClosed.emplace(GateClosed{number, kj::mv(words)});
  } else {
    send(link, RelayMessage::control, OnChannel{number}, bytesOf(words));
  }
}

void ProgramSide::serveWatched(int fd) {
  if (bells != nullptr && fd == bells->fd()) return bells->clear();
  if (fd == predecessor.get()) return servePredecessor();
  end();
}

bool ProgramSide::produce() {
  if (!segment || isMoving || isSucceeded) return false;
  bool any = false;
  if (mirror != nullptr) {
    tendLanes();
    any = mirror->send();
  }
  if (!gateClosed || (mirror != nullptr && !mirror->isDrained())) return any;
  passGateClosed();
  return true;
}

// All frames have been sent. The object list is complete, because the program has committed it, and is sent now.
void ProgramSide::passGateClosed() {
  sendObjects();
  send(link, RelayMessage::control, OnChannel{gateClosed->channel}, bytesOf(gateClosed->message));
  gateClosed.reset();
}

void ProgramSide::sendObjects() {
  kj::AutoCloseFd list = copyObjectList(stateDirectory, mostListBytes);
  struct stat is;
  KJ_SYSCALL(fstat(list, &is));
  const auto total = static_cast<uint64_t>(is.st_size);
  for (uint64_t offset = 0; offset < total;) {
    ObjectBytes head{offset, total};
    size_t bytes = std::min<uint64_t>(objectPieceBytes, total - offset);
    auto room = link.begin(static_cast<uint16_t>(RelayMessage::objects), sizeof head + bytes);
    std::memcpy(room.data(), &head, sizeof head);
    ssize_t got = pread(list, room.data() + sizeof head, bytes, static_cast<off_t>(offset));
    if (got <= 0) fail("the object list cannot be read");
    link.finish(sizeof head + static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

void ProgramSide::giveUp(const std::string& why) {
  if (owns()) lose("the connection with " + node.text() + " was cut: " + why);
  end();
}

void ProgramSide::lose(const std::string& why) {
  for (auto& [number, channel] : channels) {
    auto lost = [&](control::ToSession::Builder message) {
      !segment ? message.setRefused(reader(why)) : message.setLost(reader(why));
    };
    auto ignored = kj::runCatchingExceptions([&] { say(channel, lost); });
  }
}

// The program has ended, or its session has.
void ProgramSide::end() {
  if (predecessor.get() >= 0) unwatch(predecessor);
  if (program.get() >= 0) unwatch(program);
  if (bells != nullptr) unwatch(bells->fd());
  link.send(static_cast<uint16_t>(RelayMessage::programEnded), {});
  gateClosed.reset();
  finish();
}

bool ProgramSide::prepareToSleep() {
  return mirror == nullptr || isMoving || isSucceeded || link.isFull() || mirror->prepareToSleep();
}

void ProgramSide::awake() {
  if (mirror != nullptr && !isMoving && !isSucceeded) mirror->awake();
}

uint64_t ProgramSide::mostSleep(Backoff&) { return idleSleep; }

// A machine's host is silent while the machine may be saved or moved.
seconds ProgramSide::mostSilence() const {
  if (guest && (isMoving || isSuspended)) return std::chrono::hours(24 * 365);
  return guest ? std::max(reconnectLimit(), RelayLoop::mostSilence()) : RelayLoop::mostSilence();
}

}  // namespace vgpu::relay
