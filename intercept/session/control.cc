#include "intercept/session/control.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "intercept/session/resume-offer.h"
#include "vgpu/wire/control-channel.h"
#include "vgpu/wire/control.capnp.h"
#include "vgpu/wire/fault-point.h"
#include "vgpu/wire/unix-socket.h"

namespace vgpu {
namespace {

using std::chrono::seconds;

// A cold worker with a real driver starts in well under a second (FACTS: cuInit and a context take 0.35 s); a machine
// that needs a hundred times that is broken, and the program should say so rather than hang.
constexpr seconds openLimit{60};
// For a peer that has begun to speak to finish its sentence.
constexpr seconds messageLimit{10};
// How long a program whose gate is closed waits for its snapshot to be resumed where its daemon has ended: time for a person
// to start another one. VGPU_REATTACH_LIMIT, in seconds, says otherwise.
constexpr seconds reattachLimit{300};
constexpr size_t stackBytes = size_t{512} << 10;

ControlChannel::Deadline within(seconds limit) { return std::chrono::steady_clock::now() + limit; }

std::string text(capnp::Text::Reader reader) { return {reader.begin(), reader.size()}; }

capnp::Text::Reader reader(const std::string& text) { return {text.c_str(), text.size()}; }

// The daemon that may resume the program is not known beforehand, so any process of this machine can see the socket;
// the name is not to be guessed before the program has a snapshot that holds it.
std::string reattachName() {
  uint64_t random[2];
  KJ_SYSCALL(getrandom(random, sizeof(random), 0));
  return std::string("vgpu-") + kj::str(kj::hex(random[0]), "-", kj::hex(random[1])).cStr();
}

// Beside the socket that people name, the daemon has one for programs.
std::string sessionSocket(std::string node) {
  constexpr std::string_view scheme = "unix:", named = "/vgpud.sock", ours = "/session.sock";
  if (node.starts_with(scheme)) node.erase(0, scheme.size());
  if (node.ends_with(ours)) return node;
  if (node.ends_with(named)) node.resize(node.size() - named.size());
  return node + std::string(ours);
}

// To be passed on, not to be read.
kj::AutoCloseFd openFolder(const std::string& path) {
  int fd = open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail("the session's state directory " + path + " cannot be opened: " + std::strerror(errno));
  return kj::AutoCloseFd(fd);
}

// How large it must be is the session's to know.
MemoryFile adopt(kj::AutoCloseFd& fd) {
  return MemoryFile::adopt(fd.release(), 1, std::numeric_limits<int64_t>::max());
}

seconds reattachWish() {
  const char* wish = std::getenv("VGPU_REATTACH_LIMIT");
  return wish == nullptr ? reattachLimit : seconds(std::strtol(wish, nullptr, 10));
}

kj::AutoCloseFd wakeDescriptor() {
  int fd;
  KJ_SYSCALL(fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return kj::AutoCloseFd(fd);
}

// What the gate does now. A lost session stays connected, so that `vgpuctl ps` can show it until the program ends.
enum class Phase { running, gateClosed, suspended, lost };

class ProgramControl final : public Control {
 public:
  explicit ProgramControl(const OpenRequest& request)
      : name(request.name),
        program(request.program),
        wake(wakeDescriptor()),
        reattach(reattachName()),
        listener(listenAbstract(reattach)),
        renewalWish(wakeDescriptor()),
        reattachWait(reattachWish()) {
    connection.emplace(connectUnix(sessionSocket(request.node)), wake);
    KJ_REQUIRE(isTrusted(peerOf(connection->fd())), "vgpud belongs to another user; start one of your own",
               request.node.c_str());
    sendOpen(*connection);
    std::optional<ControlMessage> answer = connection->receive(2, within(openLimit));
    if (!answer) fail("vgpud on " + request.node + " ended before it answered");
    auto message = answer->reader->getRoot<control::ToSession>();
    if (message.isRefused()) fail("vgpud refused the session: " + text(message.getRefused()));
    if (!message.isOpened()) fail("vgpud on " + request.node + " answered with something else than a session");
    if (answer->descriptors.size() != 2) fail("vgpud on " + request.node + " opened a session without its memory");
    segmentFile = adopt(answer->descriptors[0]);
    hostArenaFile = adopt(answer->descriptors[1]);
    id = text(message.getOpened().getSession());
    stateDirectory = text(message.getOpened().getDirectory());
    stateFolder = openFolder(stateDirectory);
  }

  // A child made by fork() has a copy of this object, but neither its thread nor a say in its connections.
  ~ProgramControl() noexcept override {
    if (servingProcess != getpid()) return;
    uint64_t one = 1;
    // An eventfd takes this write unless its counter is full, and then it is readable anyway.
    [[maybe_unused]] ssize_t written = write(wake, &one, sizeof(one));
    pthread_join(thread, nullptr);
  }

  void leave() override {
    listener = nullptr;
    if (connection) connection->close();
  }

  const MemoryFile& segment() const override { return segmentFile; }
  const MemoryFile& hostArena() const override { return hostArenaFile; }
  const std::string& session() const override { return id; }
  const std::string& directory() const override { return stateDirectory; }
  void serve(SessionControl& served) override;
  std::string renew() override;

 private:
  static void* main(void* self);
  void run();
  void serveConnection();
  void handle(control::ToSession::Reader message);
  void closeGate();
  bool isSpokenTo();
  void disconnect(const std::string& why);
  void askRenewal();
  void finishRenewal(const std::string& why);
  void serveListener();
  void meet(kj::AutoCloseFd peer);
  void settle(ResumeOffer::State state);
  int millisecondsLeft() const;
  void endWhatIsLate();
  void sendOpen(ControlChannel& channel);
  template <typename Fill>
  void send(ControlChannel& channel, Fill&& fill);

  const std::string name, program;
  const kj::AutoCloseFd wake;
  const std::string reattach;
  kj::AutoCloseFd listener;
  std::string id, stateDirectory;
  kj::AutoCloseFd stateFolder;  // the same: a later daemon takes a descriptor, not our word for a path
  MemoryFile segmentFile, hostArenaFile;

  // Of renew(): one thread at a time asks, and the control thread does it.
  const kj::AutoCloseFd renewalWish;
  std::mutex renewing, renewalMutex;  // the second is a leaf
  std::condition_variable renewalChanged;
  bool renewalWanted = false;
  std::string renewalFailure;

  SessionControl* served = nullptr;
  pthread_t thread{};
  pid_t servingProcess = 0;

  // Used by the control thread alone, once it runs.
  std::optional<ControlChannel> connection;
  Phase phase = Phase::running;
  bool renewalAsked = false;
  std::optional<ResumeOffer> offer;  // while suspended
  const seconds reattachWait;
  std::optional<std::chrono::steady_clock::time_point> waitsUntil;  // suspended, and nobody knows to where
};

template <typename Fill>
void ProgramControl::send(ControlChannel& channel, Fill&& fill) {
  capnp::MallocMessageBuilder builder;
  fill(builder.initRoot<control::ToNode>());
  channel.send(builder, nullptr, within(messageLimit));
}

void ProgramControl::sendOpen(ControlChannel& channel) {
  capnp::MallocMessageBuilder builder;
  auto open = builder.initRoot<control::ToNode>().initOpen();
  open.setVersion(control::VERSION);
  open.setPid(getpid());
  open.setName(reader(name));
  open.setProgram(reader(program));
  open.setReattach(reader(reattach));
  open.setSession(reader(id));
  const int memory[] = {segmentFile.fd(), hostArenaFile.fd(), stateFolder};
  channel.send(builder, id.empty() ? nullptr : kj::arrayPtr(memory, 3), within(messageLimit));
}

// The program's signals are the program's: the thread starts with all of them blocked.
void ProgramControl::serve(SessionControl& session) {
  served = &session;
  sigset_t all, before;
  sigfillset(&all);
  KJ_SYSCALL(pthread_sigmask(SIG_SETMASK, &all, &before));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stackBytes);
  int error = pthread_create(&thread, &attributes, main, this);
  // A program with much thread-local storage needs a larger stack than ours: then take the default.
  if (error == EINVAL) error = pthread_create(&thread, nullptr, main, this);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
    pollfd polled[] = {{wake, POLLIN, 0},
                       {listener, POLLIN, 0},
                       {connection ? connection->fd() : -1, POLLIN, 0},
                       {renewalWish, POLLIN, 0},
                       {offer ? offer->fd() : -1, POLLIN, 0}};
    if (poll(polled, 5, millisecondsLeft()) < 0) {
      if (errno == EINTR) continue;
      return disconnect(std::string("poll: ") + std::strerror(errno));
    }
    if (polled[0].revents != 0) return;
    if (polled[2].revents != 0) serveConnection();
    if (polled[4].revents != 0) settle(offer->serve());
    if (polled[1].revents != 0) serveListener();  // after the others: whoever has gone does not stand in a new one's way
    if (polled[3].revents != 0) askRenewal();
    endWhatIsLate();
  }
}

int ProgramControl::millisecondsLeft() const {
  auto until = offer ? std::optional(offer->deadline()) : waitsUntil;
  if (!until) return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

void ProgramControl::endWhatIsLate() {
  if (millisecondsLeft() != 0) return;
  if (offer) return settle(offer->expire());
  waitsUntil.reset();
  phase = Phase::lost;
  served->lose("its vgpud ended while this program was being suspended, and nobody has resumed it since");
  finishRenewal("the session is lost");
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
      return askRenewal();  // where a suspend that failed kept it waiting
    case control::ToSession::RENEWAL_FAILED:
      return finishRenewal(text(message.getRenewalFailed()));
    case control::ToSession::SUSPENDED:
      if (phase != Phase::gateClosed) fail("vgpud says that the session is suspended, and its gate is open");
      phase = Phase::suspended;
      return;
    case control::ToSession::LOST:
      phase = Phase::lost;
      served->lose(text(message.getLost()));
      return finishRenewal(text(message.getLost()));
    default:
      fail("vgpud sent a message that has no place here");
  }
}

void ProgramControl::closeGate() {
  uint64_t position = 0;
  std::string refusal = phase == Phase::running ? "" : "the gate is closed already, or the session lost";
  if (refusal.empty()) {
    faultPoint("program.gate-closing");
    auto caught =
        kj::runCatchingExceptions([&] { position = served->closeGate([this] { return isSpokenTo(); }); });
    KJ_IF_MAYBE (exception, caught) {
      refusal = exception->getDescription().cStr();
    }
  }
  if (!refusal.empty()) {
    return send(*connection, [&](control::ToNode::Builder answer) { answer.setRefused(reader(refusal)); });
  }
  phase = Phase::gateClosed;
  faultPoint("program.gate-closed");
  send(*connection, [&](control::ToNode::Builder answer) { answer.initGateClosed().setPosition(position); });
}

// Whether the daemon has said something, or gone, since we began to do what it asked for last. It says nothing before we
// answer unless it takes its wish back or the worker is lost.
bool ProgramControl::isSpokenTo() {
  pollfd polled[] = {{connection->fd(), POLLIN, 0}, {wake, POLLIN, 0}};
  return poll(polled, 2, 0) > 0;
}

// While suspended, the program does not need a daemon. Where it has closed its gate, there may be a snapshot of this very
// moment, which the daemon did not come to tell. Any other time it has just lost its worker.
void ProgramControl::disconnect(const std::string& why) {
  connection.reset();
  if (phase == Phase::suspended || phase == Phase::lost) return;
  if (phase == Phase::gateClosed) {
    phase = Phase::suspended;
    waitsUntil = std::chrono::steady_clock::now() + reattachWait;
    fprintf(stderr,
            "vgpu: vgpud ended while it suspended this program, which waits %lld s for its snapshot to be resumed\n",
            static_cast<long long>(reattachWait.count()));
    return;
  }
  phase = Phase::lost;
  served->lose("the connection to vgpud ended: " + why);
  finishRenewal(why);
}

std::string ProgramControl::renew() {
  std::lock_guard alone(renewing);
  std::unique_lock lock(renewalMutex);
  renewalWanted = true;
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(renewalWish, &one, sizeof(one));  // as that of `wake`
  renewalChanged.wait(lock, [this] { return !renewalWanted; });
  return renewalFailure;
}

// While the gate is closed somebody suspends the session; then the resume brings a new worker, or the gate is opened.
void ProgramControl::askRenewal() {
  uint64_t wishes;
  [[maybe_unused]] ssize_t got = read(renewalWish, &wishes, sizeof(wishes));
  {
    std::lock_guard lock(renewalMutex);
    if (!renewalWanted) return;
  }
  if (phase == Phase::lost) return finishRenewal("the session is lost");
  if (phase != Phase::running || renewalAsked) return;
  renewalAsked = true;
  send(*connection, [](control::ToNode::Builder message) { message.setRenew(); });
}

void ProgramControl::finishRenewal(const std::string& why) {
  renewalAsked = false;
  std::lock_guard lock(renewalMutex);
  if (!renewalWanted) return;
  renewalWanted = false;
  renewalFailure = why;
  renewalChanged.notify_all();
}

void ProgramControl::serveListener() {
  int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;  // it gave up, or we are out of descriptors: it sees no answer
  kj::AutoCloseFd peer(fd);
  // Whatever goes wrong with a stranger ends his connection and changes nothing here.
  auto caught = kj::runCatchingExceptions([&] {
    if (isTrusted(peerOf(peer))) meet(kj::mv(peer));
  });
  KJ_IF_MAYBE (exception, caught) {
    KJ_LOG(INFO, "a daemon did not resume this program", *exception);
  }
}

// A daemon has found the program. Only a suspended session can change hands, and to one daemon at a time.
void ProgramControl::meet(kj::AutoCloseFd peer) {
  ControlChannel candidate(kj::mv(peer), wake);
  std::optional<ControlMessage> first = candidate.receive(0, within(messageLimit));
  if (!first) return;
  auto request = first->reader->getRoot<control::ToSession>();
  if (!request.isReattach()) return;
  std::string wanted = text(request.getReattach());
  std::string refusal;
  if (wanted != id) refusal = "this program's session is " + id + ", not " + wanted;
  if (phase != Phase::suspended) refusal = "session " + id + " is not suspended";
  if (offer) refusal = "session " + id + " is being resumed by another vgpud";
  if (!refusal.empty()) {
    return send(candidate, [&](control::ToNode::Builder answer) { answer.setRefused(reader(refusal)); });
  }
  faultPoint("program.reattach-accepted");
  sendOpen(candidate);
  offer.emplace(std::move(candidate), *served);
}

void ProgramControl::settle(ResumeOffer::State state) {
  if (state == ResumeOffer::State::waiting) return;
  ResumeOffer ended = std::move(*offer);
  offer.reset();
  if (state == ResumeOffer::State::over) return;
  phase = Phase::running;
  waitsUntil.reset();
  auto previous = std::exchange(connection, std::optional<ControlChannel>(ended.release()));
  if (state == ResumeOffer::State::lost) return disconnect(ended.reason());
  served->openGate();
  finishRenewal("");
  if (!previous) return;
  // It may have ended: then nobody need know.
  kj::runCatchingExceptions(
      [&] { send(*previous, [](control::ToNode::Builder farewell) { farewell.setMoved(); }); });
}

}  // namespace

std::unique_ptr<Control> Control::open(const OpenRequest& request) { return std::make_unique<ProgramControl>(request); }

}  // namespace vgpu
