#include "tools/relay/node-side.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "tools/common/reason.h"
#include "tools/relay/relay-messages.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/text.h"
#include "vgpu/control/unix-socket.h"
#include "vgpu/wire/handover.h"

namespace vgpu::relay {
namespace {

using std::chrono::seconds;

constexpr seconds openLimit{60};
constexpr std::chrono::hours forDays{24 * 365};
// When nothing is outstanding, only the worker's own flags can change, and words that graphs write.
constexpr uint64_t idleSleep = 20'000'000, watchingSleep = 1'000'000;  // nanoseconds

void passOpen(control::Open::Reader open, ControlChannel& daemon, kj::ArrayPtr<const int> memory,
              const std::optional<GuestPlace>& guest) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<control::ToNode>();
  root.setOpen(open);
  root.getOpen().setRelayed(true);
  auto place = root.getOpen().initPlace();  // replaces the program's own claim
  if (guest) {
    place.setGuest(reader(guest->guest));
    place.setSlot(static_cast<uint32_t>(guest->slot));
    place.setClaim(guest->claim);
    place.setFileBytes(guest->file->fileBytes());
  }
  daemon.send(message, memory, Clock::now() + messageLimit);
}

}  // namespace

std::string NodeSide::socketOf(const std::string& runDirectory, const SessionToken& token) {
  return runDirectory + "/relays/" + textOf(token);
}

MemoryFile NodeSide::adoptMemory(kj::AutoCloseFd& fd) {
  return MemoryFile::adopt(fd.release(), 1, std::numeric_limits<int64_t>::max());
}

NodeSide::NodeSide(std::unique_ptr<ByteStream> connection, std::string directory, const Greeting& greeting)
    : runDirectory(std::move(directory)), socketPath(socketOf(runDirectory, greeting.token)), latest(greeting) {
  if (mkdir((runDirectory + "/relays").c_str(), 0700) < 0 && errno != EEXIST)
    fail("cannot make the folder for relays in " + runDirectory);
  acceptor = listenUnix(socketPath);
  watch(acceptor);
  laneAcceptor = listenUnix(socketPath + lanesSuffix);
  watch(laneAcceptor);
  use(std::move(connection));
}

// Makes the memory that a worker would make: the session's former memory is on the other host.
NodeSide::NodeSide(std::unique_ptr<ByteStream> connection, std::string directory, const Greeting& greeting,
                   ControlChannel program)
    : NodeSide(std::move(connection), std::move(directory), greeting) {
  auto answer = program.receive(0, Clock::now() + openLimit);
  if (!answer || !answer->reader->getRoot<control::ToSession>().isOpened()) fail("the session is no longer expected here");
  segmentFile = Segment::create();
  segment.emplace(segmentFile);
  hostArenaFile = MemoryFile::create("vgpu-host-arena", hostArenaBytes);
  enterFolder(answer->reader->getRoot<control::ToSession>().getOpened());
  mirror = std::make_unique<WorkerMirror>(*segment, link);
  channels.emplace(0u, std::move(program));
  isArriving = true;
}

NodeSide::NodeSide(GuestPlace place, std::string directory, const std::string& attachSocket)
    : runDirectory(std::move(directory)), socketPath(attachSocket), guest(std::move(place)) {
  segmentFile = guest->segment();
  unlink(socketPath.c_str());  // left by a killed process: we have locked the slot
  acceptor = listenUnix(socketPath);
  watch(acceptor);
  use(std::make_unique<GuestStream>(*guest, GuestFile::Side::host));
}

// The machine's memory may be loaded at any time from here on. So only the segment's header is written, which the machine's memory contains
// too.
NodeSide::NodeSide(GuestPlace place, std::string directory, const std::string& attachSocket, ControlChannel daemon,
                   Program itsProgram)
    : runDirectory(std::move(directory)), socketPath(attachSocket), guest(std::move(place)), program(std::move(itsProgram)) {
  auto answer = daemon.receive(0, Clock::now() + openLimit);
  if (!answer || !answer->reader->getRoot<control::ToSession>().isOpened()) fail("the session is no longer expected here");
  segmentFile = guest->segment();
  Segment::prepare(segmentFile);
  hostArenaFile = MemoryFile::create("vgpu-host-arena", hostArenaBytes);
  unlink(socketPath.c_str());
  acceptor = listenUnix(socketPath);
  watch(acceptor);
  enterFolder(answer->reader->getRoot<control::ToSession>().getOpened());
  channels.emplace(0u, std::move(daemon));
  isArriving = true;
  beginCut();
}

NodeSide::~NodeSide() {
  if (guest) guest->words().ended.store(guest->claim, std::memory_order_release);
  unlink(socketPath.c_str());
  if (!guest) unlink((socketPath + lanesSuffix).c_str());
}

void NodeSide::take(const LinkMessage& message) {
  if (mirror != nullptr && mirror->apply(message)) return;
  auto payload = message.payload;
  switch (static_cast<RelayMessage>(message.type)) {
    case RelayMessage::open:
      return takeOpen(payload);
    case RelayMessage::control: {
      auto on = mirror::take<OnChannel>(payload);
      return takeControl(on.channel, payload);
    }
    case RelayMessage::closed:
      channels.erase(mirror::take<OnChannel>(payload).channel);
      return;
    case RelayMessage::objects:
      return takeObjects(payload);
    case RelayMessage::programEnded:
      if (guest) guest->file->clearPieces(guest->slot, guest->locked);
      channels.clear();
      return finish();
    default:
      fail("the program's side sent an unexpected message: " + std::to_string(message.type));
  }
}

// Opens the session as the client library would. The program's pid is that of its own host.
void NodeSide::takeOpen(std::span<const std::byte> bytes) {
  if (isOpened() || !channels.empty()) fail("the program's side opened the session twice");
  ReceivedControl request(bytes);
  if (!request.get<control::ToNode>().isOpen()) fail("the program's side did not begin with `open`");
  std::string why;
  std::optional<ControlMessage> answer;
  auto caught = kj::runCatchingExceptions([&] {
    auto [found, isNew] = channels.emplace(0u, ControlChannel(connectUnix(runDirectory + "/session.sock")));
    const int memory[] = {segmentFile.fd()};
    passOpen(request.get<control::ToNode>().getOpen(), found->second, kj::arrayPtr(memory, guest ? 1 : 0), guest);
    answer = found->second.receive(2, Clock::now() + openLimit);
    if (!answer) fail("the node's vgpud ended before it answered");
    if (answer->reader->getRoot<control::ToSession>().isOpened()) adopt(*answer);
  });
  KJ_IF_MAYBE (exception, caught) {
    why = reasonOf(*exception);
  }
  if (isOpened()) return;
  capnp::MallocMessageBuilder refusal;
  const bool isRefused = answer && answer->reader->getRoot<control::ToSession>().isRefused();
  if (isRefused) refusal.setRoot(answer->reader->getRoot<control::ToSession>());
  else refusal.initRoot<control::ToSession>().setRefused(reader(why));
  auto words = capnp::messageToFlatArray(refusal);
  send(link, RelayMessage::control, OnChannel{0}, bytesOf(words));
  passClosed(0);
}

void NodeSide::adopt(ControlMessage& answer) {
  if (answer.descriptors.size() != 2) fail("the node's vgpud opened a session without its memory");
  auto opened = answer.reader->getRoot<control::ToSession>();
  if (!guest) segmentFile = adoptMemory(answer.descriptors[0]);
  hostArenaFile = adoptMemory(answer.descriptors[1]);
  enterFolder(opened.getOpened());
  auto words = flatten<control::ToSession>(opened);
  link.send(static_cast<uint16_t>(RelayMessage::opened), bytesOf(words));
  if (guest) return;
  segment.emplace(segmentFile);
  mirror = std::make_unique<WorkerMirror>(*segment, link);
}

void NodeSide::enterFolder(control::Opened::Reader opened) {
  stateDirectory = opened.getDirectory().cStr();
  stateFolder = kj::AutoCloseFd(::open(stateDirectory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (stateFolder.get() < 0) fail("the session's state directory " + stateDirectory + " cannot be opened");
  reattach = listenUnix(stateDirectory + "/" + reattachSocketName);
  watch(reattach);
}

void NodeSide::takeControl(uint32_t number, std::span<const std::byte> bytes) {
  auto found = channels.find(number);
  if (found == channels.end()) return;  // the daemon has closed it
  ReceivedControl message(bytes);
  auto said = message.get<control::ToNode>();
  if (said.isOpen() && openedMessage != nullptr) {  // the relay has already answered for it
    send(link, RelayMessage::control, OnChannel{number}, bytesOf(openedMessage));
    openedMessage = nullptr;
    return;
  }
  const int memory[] = {segmentFile.fd(), hostArenaFile.fd(), stateFolder};
  if (said.isGateClosed()) isHeld = true;
  if (said.isAccepted() && segment) {  // otherwise the program has written it itself
    accepted = said.getAccepted();
    segment->header().handover.store(accepted);
  }
  auto caught = kj::runCatchingExceptions([&] {
    if (said.isOpen())  // in answer to `reattach`
      passOpen(said.getOpen(), found->second, kj::arrayPtr(memory, 3), guest);
    else
      message.pass<control::ToNode>(found->second, nullptr, Clock::now() + messageLimit);
  });
  if (caught != nullptr) passClosed(number);
}

// Written beside the existing list, and renamed over it when it is complete.
void NodeSide::takeObjects(std::span<const std::byte> bytes) {
  auto head = mirror::take<ObjectBytes>(bytes);
  const std::string folder = stateDirectory + "/objects", made = folder + "/new", final = folder + "/data.mdb";
  if (head.offset == 0) {
    if (mkdir(folder.c_str(), 0700) < 0 && errno != EEXIST) fail("cannot make the folder " + folder);
    int fd;
    KJ_SYSCALL(fd = ::open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), made.c_str());
    objects = kj::AutoCloseFd(fd);
  }
  if (objects.get() < 0 || head.offset + bytes.size() > head.total) fail("the program's side sent an invalid object list");
  ssize_t put;
  KJ_SYSCALL(put = pwrite(objects, bytes.data(), bytes.size(), static_cast<off_t>(head.offset)), made.c_str());
  if (static_cast<size_t>(put) != bytes.size()) fail("there is no space for the object list in " + folder);
  if (head.offset + bytes.size() < head.total) return;
  objects = nullptr;
  KJ_SYSCALL(rename(made.c_str(), final.c_str()), final.c_str());
}

bool NodeSide::produce() { return mirror != nullptr && mirror->send(); }

void NodeSide::serveChannel(uint32_t number) {
  std::optional<ControlMessage> received;
  auto caught = kj::runCatchingExceptions([&] { received = channels.at(number).receive(0, Clock::now() + messageLimit); });
  if (caught != nullptr || !received) return passClosed(number);
  auto message = received->reader->getRoot<control::ToSession>();
  if (guest && isArriving) return answerForProgram(*received);
  if (message.isLeft()) return leave(number);
  if (message.isReattach()) {  // the first message of the daemon at which the session has arrived
    auto words = flatten<control::ToSession>(message);
    return send(link, RelayMessage::reattach, OnChannel{number}, bytesOf(words));
  }
  if (mirror != nullptr && !isCut()) mirror->send();  // what the worker has done before must be sent before
  note(message);
  auto words = flatten<control::ToSession>(message);
  send(link, RelayMessage::control, OnChannel{number}, bytesOf(words));
}

void NodeSide::note(control::ToSession::Reader message) {
  isStill = message.isRewrite() || message.isSuspended() || message.isSuspendedInMemory();
  if (message.isStay()) isHeld = false;  // if the machine does not run here again, its session ends
  if (message.isOpenGate()) isHeld = isArriving = false;
}

// The daemon has ended, or has given its resume up. If the worker has not claimed the session by then, it cannot any more.
void NodeSide::passClosed(uint32_t number) {
  channels.erase(number);
  if (segment && accepted != 0) withdrawHandover(segment->header().handover, accepted);
  if (mirror != nullptr) mirror->send();
  send(link, RelayMessage::closed, OnChannel{number});
  if (channels.empty() && !isHeld) finish();
}

void NodeSide::serveWatched(int fd) {
  if (fd == acceptor.get()) return guest ? attach() : takeConnection();
  if (fd == laneAcceptor.get()) return takeLane();
  takeDaemon();
}

// Answers for the program while its machine is on the way.
void NodeSide::answerForProgram(ControlMessage& received) {
  auto message = received.reader->getRoot<control::ToSession>();
  if (message.isReattach()) {
    reattachMessage = flatten<control::ToSession>(message);
    openForProgram(message.getReattach());
  } else if (message.isOpened()) {
    openedMessage = flatten<control::ToSession>(message);  // the machine is here, or will be at once
  } else if (!message.isWorking()) {
    channels.clear();
    finish();
  }
}

void NodeSide::openForProgram(const std::string& session) {
  capnp::MallocMessageBuilder message;
  auto open = message.initRoot<control::Open>();
  open.setVersion(control::VERSION);
  open.setPid(program.pid);
  open.setName(reader(program.name));
  open.setProgram(reader(program.path));
  open.setSession(reader(session));
  const int memory[] = {segmentFile.fd(), hostArenaFile.fd(), stateFolder};
  passOpen(open.asReader(), channels.at(0), kj::arrayPtr(memory, 3), guest);
}

// The machine has moved, or is saved on disk, and the session with it: nobody reads what is written here any more.
void NodeSide::leave(uint32_t number) {
  capnp::MallocMessageBuilder message;
  message.initRoot<control::ToNode>().setMoved();
  auto ignored = kj::runCatchingExceptions([&] { channels.at(number).send(message, nullptr, Clock::now() + messageLimit); });
  channels.clear();
  guest->file->clearPieces(guest->slot, guest->locked);
  replaceConnection("its machine has left this host");
  finish();
}

void NodeSide::giveUp(const std::string& why) {
  if (guest && !channels.empty()) std::fprintf(stderr, "vgpu-relay: a virtual machine's session has ended: %s\n", why.c_str());
  channels.clear();
  finish();
}

// A machine that is stopped looks the same from here as one that has ended. While the gate is closed, the program may sleep for days.
seconds NodeSide::mostSilence() const {
  if (!guest) return RelayLoop::mostSilence();
  return isHeld ? forDays : std::max(reconnectLimit(), RelayLoop::mostSilence());
}

// A migrating machine may arrive at any time; the daemon's limit is shorter.
seconds NodeSide::mostCut() const { return guest && (isArriving || isStill) ? forDays : RelayLoop::mostCut(); }

uint64_t NodeSide::mostSleep(Backoff& backoff) {
  if (mirror != nullptr && mirror->isExpecting()) return backoff.sleepNanoseconds();
  return mirror != nullptr && mirror->isWatching() ? watchingSleep : idleSleep;
}

}  // namespace vgpu::relay
