// vgpu-relay: one end of the connection between a program and a node elsewhere (docs/remote.md).
//
//   vgpu-relay program   started by `vgpuctl run`: listens like a vgpud, and makes a process for each connection
//   vgpu-relay tool      started by vgpuctl and vgpud, which talk to the node through its descriptor 3
//   vgpu-relay node      started by vgpud for each connection from elsewhere, which is its descriptor 3
//   vgpu-relay guest     started by vgpud for each virtual machine, whose memory is its descriptor 3: makes a process for each of the
//                        machine's sessions
//   vgpu-relay newcomer  started by vgpud for a session that comes with its virtual machine, whose memory is its descriptor 3
//   vgpu-relay successor started by a `vgpu-relay program`, or by a vgpud, whose session moves to another host
//   vgpu-relay keys      makes and shows the keys of tls: connections, for vgpuctl, which does not link OpenSSL
#include <fcntl.h>
#include <kj/debug.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string_view>

#include "tools/common/arrival.h"
#include "tools/common/guest-sockets.h"
#include "tools/common/installation.h"
#include "tools/common/node-relay.h"
#include "tools/common/reason.h"
#include "tools/common/spawn.h"
#include "tools/keys/commands.h"
#include "tools/relay/guest-device.h"
#include "tools/relay/guest-watcher.h"
#include "tools/relay/node-connection.h"
#include "tools/relay/node-side.h"
#include "tools/relay/packed-stream.h"
#include "tools/relay/program-side.h"
#include "tools/relay/splice.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::relay {
namespace {

constexpr std::chrono::seconds greetingLimit{10};
constexpr std::chrono::seconds placeLimit{2};
constexpr int lookMilliseconds = 1000;  // how often it looks for slots of processes that have ended

// In a process of its own, so that a failure of one connection does not affect the others.
void inChild(const std::function<void()>& work) {
  pid_t child = fork();
  if (child < 0) std::fprintf(stderr, "vgpu-relay: a connection is not served: %s\n", std::strerror(errno));
  if (child != 0) return;
  _exit(exitCodeOf("vgpu-relay", [&] {
    work();
    return 0;
  }));
}

void serveProgram(kj::AutoCloseFd connection, const Endpoint& node, const std::string& directory) {
  if (!isTrusted(peerOf(connection))) return;
  ProgramSide side(kj::mv(connection), node, directory);
  if (side.open()) side.run();
}

void serveTool(kj::AutoCloseFd connection, const Endpoint& node) {
  if (!isTrusted(peerOf(connection))) return;
  auto reached = reachNode(node, {GreetingFor::control});
  PlainStream tool(kj::mv(connection));
  splice(tool, *reached.stream);
}

Endpoint endpointOf(const std::string& address) {
  auto endpoint = parseEndpoint(address);
  if (!endpoint) fail("\"" + address + "\" is not the address of a node: give " + endpointForms);
  return *endpoint;
}

int runProgramSide(const Endpoint& node, const std::string& directory) {
  signal(SIGCHLD, SIG_IGN);  // the system reaps children
  KJ_SYSCALL(mkdir((directory + "/sessions").c_str(), 0700));
  kj::AutoCloseFd programs = listenUnix(directory + "/session.sock"), tools = listenUnix(directory + "/vgpud.sock");
  std::shared_ptr<GuestFile> guest;
  if (node.transport == Transport::ivshmem) guest = openGuestDevice(node);
  std::printf("vgpu-relay: ready %s\n", guest ? describeHost(*guest).c_str() : "");
  std::fflush(stdout);
  while (true) {
    if (guest) releaseAbandoned(*guest);
    pollfd polled[] = {{programs, POLLIN, 0}, {tools, POLLIN, 0}};
    const int ready = poll(polled, 2, guest ? lookMilliseconds : -1);
    if (ready < 0 && errno != EINTR) KJ_FAIL_SYSCALL("poll", errno);
    if (ready <= 0) continue;
    for (auto& one : polled) {
      int fd = one.revents != 0 ? accept4(one.fd, nullptr, nullptr, SOCK_CLOEXEC) : -1;
      if (fd < 0) continue;
      kj::AutoCloseFd connection(fd);
      const bool isProgram = one.fd == programs.get();
      inChild([&] {
        programs = nullptr;
        tools = nullptr;
        if (isProgram)
          serveProgram(kj::mv(connection), node, directory);
        else
          serveTool(kj::mv(connection), node);
      });
    }
  }
}

kj::AutoCloseFd takeGiven() {
  kj::AutoCloseFd connection(relayDescriptor);
  KJ_SYSCALL(fcntl(connection, F_SETFD, FD_CLOEXEC));
  return connection;
}

// A greeted connection, in the form in which control plane calls or a session's memory are sent over it.
std::unique_ptr<ByteStream> passedOn(std::unique_ptr<ByteStream> connection, GreetingFor what) {
  if (what != GreetingFor::stream) return connection;
  return std::make_unique<PackedStream>(std::move(connection));
}

// First reports whether the node was reached (tools/common/node-relay.h).
int runToolSide(const Endpoint& node, GreetingFor what) {
  PlainStream tool(takeGiven());
  auto say = [&](char status, const std::string& why) {
    const std::string said = status + why;
    tool.write(std::as_bytes(std::span(said)));
  };
  ReachedNode reached;
  auto caught = kj::runCatchingExceptions([&] { reached = reachNode(node, {what}); });
  KJ_IF_MAYBE (exception, caught) {
    say(nodeNotReached, reasonOf(*exception));
    return 1;
  }
  say(nodeReached, "");
  splice(tool, *passedOn(std::move(reached.stream), what));
  return 0;
}

// Before it is greeted, a connection's process is vgpud's child, because vgpud counts these; the process of a session lives as long as its
// program, and must not depend on that vgpud.
void leaveParent() {
  pid_t child;
  KJ_SYSCALL(child = fork());
  if (child != 0) _exit(0);
  setsid();
}

int runSuccessor(const Endpoint& node, const std::string& stateDirectory) {
  leaveParent();             // first, because a vgpud that ends waits for its children
  signal(SIGCHLD, SIG_IGN);  // the system reaps the starter of its own successor
  kj::AutoCloseFd predecessor = takeGiven();
  SessionToken token;
  ssize_t got;
  KJ_SYSCALL(got = recv(predecessor, token.data(), token.size(), MSG_WAITALL));
  if (static_cast<size_t>(got) != token.size()) return 1;  // the predecessor has ended
  ProgramSide side(node, token, stateDirectory, kj::mv(predecessor));
  side.follow();
  side.run();
  return 0;
}

// Passes the connection to the relay that has the session. An encrypted connection cannot be passed: this process stays and forwards its
// bytes.
bool passOn(ByteStream& stream, bool isEncrypted, const std::string& directory, const Greeting& greeting) {
  if (!isEncrypted) return NodeSide::passOn(stream.fd(), directory, greeting);
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
  if (!NodeSide::passOn(theirs, directory, greeting)) return false;
  theirs = nullptr;
  leaveParent();
  PlainStream relay(kj::mv(ours));
  splice(stream, relay);
  return true;
}

struct Guest {
  std::unique_ptr<ByteStream> stream;
  Greeting greeting;
};

// Accepts a connection about whose peer nothing is known except what admitPeer() checks. Throws kj::Exception, saying who was refused and
// why.
Guest receive(kj::AutoCloseFd connection, const Endpoint& listener, GreetingDeadline limit) {
  std::string peer = "a client that has disconnected";
  Guest guest;
  auto caught = kj::runCatchingExceptions([&] {
    peer = peerAt(connection, listener.transport).text();
    guest.stream = admitPeer(kj::mv(connection), listener, limit);
    guest.greeting = receiveGreeting(*guest.stream, limit);
  });
  KJ_IF_MAYBE (exception, caught) {
    fail("the connection of " + peer + " is not served: " + reasonOf(*exception));
  }
  return guest;
}

int runNodeSide(const Endpoint& listener, const std::string& directory, bool isQuiet) {
  const auto limit = Clock::now() + greetingLimit;
  Guest guest;
  auto caught = kj::runCatchingExceptions([&] { guest = receive(takeGiven(), listener, limit); });
  KJ_IF_MAYBE (exception, caught) {
    if (isQuiet) return 1;
    kj::throwFatalException(kj::mv(*exception));
  }
  auto& [stream, greeting] = guest;
  switch (greeting.what) {
    case GreetingFor::control:
    case GreetingFor::stream: {
      acceptGreeting(*stream, {}, limit);
      leaveParent();
      const char* socket = greeting.what == GreetingFor::control ? "vgpud.sock" : streamsSocketName;
      PlainStream daemon(connectUnix(directory + "/" + socket));
      splice(*passedOn(std::move(stream), greeting.what), daemon);
      return 0;
    }
    case GreetingFor::session:
      if (passOn(*stream, listener.transport == Transport::tls, directory, greeting)) return 0;
      if (greeting.received != 0) {
        refuseGreeting(*stream, "this node no longer has that session", limit);
        return 0;
      }
      acceptGreeting(*stream, {}, limit);
      leaveParent();
      NodeSide(std::move(stream), directory, greeting).run();
      return 0;
    case GreetingFor::arrival: {
      acceptGreeting(*stream, {}, limit);
      leaveParent();  // first, because the daemon watches the process that connects to it
      kj::AutoCloseFd daemon = connectUnix(directory + "/" + streamsSocketName);
      announce(daemon, Bringing::program, std::string(greeting.token.begin(), greeting.token.end()));
      NodeSide(std::move(stream), directory, greeting, ControlChannel(kj::mv(daemon))).run();
      return 0;
    }
    case GreetingFor::lane: {
      auto lane = NodeSide::offerLane(directory, greeting);
      if (lane == nullptr) {
        refuseGreeting(*stream, "the session now has another connection, or none", limit);
        return 0;
      }
      acceptGreeting(*stream, {}, limit);
      leaveParent();
      lane->run([&] { return std::move(stream); });
      return 0;
    }
    default:
      refuseGreeting(*stream, "it asks for an unknown kind of connection", limit);
      return 1;
  }
}

// The arguments, as Guests::expect() of vgpud passes them.
struct Newcomer {
  std::string guest, runDirectory;
  uint64_t slot = 0, claim = 0;
  NodeSide::Program program;
};

// Waits, because a process of the slot's former session may need a moment to end.
GuestPlace takePlace(const Newcomer& newcomer, kj::AutoCloseFd memory) {
  auto file = std::make_shared<GuestFile>(GuestFile::reopen(memory), GuestFile::Side::host);
  if (newcomer.slot >= file->slots())
    fail("the memory of guest " + newcomer.guest + " has no slot " + std::to_string(newcomer.slot));
  for (const auto limit = Clock::now() + placeLimit; Clock::now() < limit; usleep(10'000)) {
    auto locked = file->lock(newcomer.slot);
    const uint64_t claimed = file->slot(newcomer.slot).claimed.load(std::memory_order_acquire);
    if (locked && (claimed == 0 || claimed == newcomer.claim))
      return {file, newcomer.slot, newcomer.claim, kj::mv(*locked), 0, newcomer.guest};
  }
  fail("slot " + std::to_string(newcomer.slot) + " of the memory of guest " + newcomer.guest +
       " is in use here by another session of a virtual machine");
}

// First reports whether it has claimed the place; then becomes a process that lives as long as the session.
int runNewcomer(const Newcomer& newcomer) {
  kj::AutoCloseFd memory = takeGiven(), daemon(relayDescriptor + 1);
  KJ_SYSCALL(fcntl(daemon, F_SETFD, FD_CLOEXEC));
  PlainStream starter(kj::mv(daemon));
  auto say = [&](const std::string& what) { starter.write(std::as_bytes(std::span(what))); };
  std::string token(arrivalTokenBytes, 0);
  KJ_REQUIRE(recv(starter.fd(), token.data(), token.size(), MSG_WAITALL) == static_cast<ssize_t>(token.size()),
             "vgpud has ended");
  std::optional<GuestPlace> place;
  auto caught = kj::runCatchingExceptions([&] { place.emplace(takePlace(newcomer, kj::mv(memory))); });
  KJ_IF_MAYBE (exception, caught) {
    say(nodeNotReached + reasonOf(*exception));
    return 1;
  }
  leaveParent();  // first, because the daemon watches the process that connects to it
  kj::AutoCloseFd connection = connectUnix(newcomer.runDirectory + "/" + streamsSocketName);
  announce(connection, Bringing::program, token);
  say(std::string(1, nodeReached));
  shutdown(starter.fd(), SHUT_RDWR);
  NodeSide(kj::mv(*place), newcomer.runDirectory, attachSocketOf(newcomer.runDirectory, newcomer.guest, newcomer.slot),
           ControlChannel(kj::mv(connection)), newcomer.program)
      .run();
  return 0;
}

int run(int argc, char** argv) {
  std::string node, listener, directory;
  GuestWatcher::About about;
  bool isQuiet = false, isStream = false;
  std::function<int()> chosen;
  CLI::App app{"One end of the connection between a program and a node on another host. Started by vgpuctl and vgpud.", "vgpu-relay"};
  app.set_version_flag("--version", std::string("vgpu-relay ") + productVersion);
  app.require_subcommand(1);
  auto* program = app.add_subcommand("program", "Stand in for the node, for programs of this host");
  program->add_option("--node", node, endpointForms)->required();
  program->add_option("--run-dir", directory, "an empty folder for sockets and state")->required();
  program->callback([&] { chosen = [&] { return runProgramSide(endpointOf(node), directory); }; });
  auto* tool = app.add_subcommand("tool", "Connect descriptor 3 with a node's vgpud");
  tool->add_option("--node", node, endpointForms)->required();
  tool->add_flag("--stream", isStream, "for the memory of a session that migrates there, instead of for calls");
  tool->callback(
      [&] { chosen = [&] { return runToolSide(endpointOf(node), isStream ? GreetingFor::stream : GreetingFor::control); }; });
  auto* successor = app.add_subcommand("successor", "Replace the relay to which descriptor 3 leads");
  successor->add_option("--node", node, endpointForms)->required();
  successor->add_option("--state-dir", directory, "the directory in which the program waits")->required();
  successor->callback([&] { chosen = [&] { return runSuccessor(endpointOf(node), directory); }; });
  auto* machine = app.add_subcommand("guest", "Serve the programs of a virtual machine; descriptor 3 is its memory");
  machine->add_option("--name", about.name, "the machine's, for messages")->required();
  machine->add_option("--gpus", about.gpus, "how many GPUs its programs see")->required();
  machine->add_flag("--ptx", about.runsPtx, "whether these GPUs run PTX");
  machine->add_option("--run-dir", directory, "the run directory of the vgpud that serves it")->required();
  machine->callback([&] {
    chosen = [&]() -> int {
      GuestWatcher(takeGiven(), about, directory).run();
      return 0;
    };
  });
  Newcomer newcomer;
  auto* comes = app.add_subcommand("newcomer", "Stand in for the program of a session that arrives with its virtual machine");
  comes->add_option("--name", newcomer.guest, "the machine's")->required();
  comes->add_option("--slot", newcomer.slot, "the session's slot in its memory")->required();
  comes->add_option("--claim", newcomer.claim, "the number with which the session claimed the slot")->required();
  comes->add_option("--run-dir", newcomer.runDirectory, "the run directory of the vgpud that serves the machine")->required();
  comes->add_option("--session-name", newcomer.program.name, "for people")->required();
  comes->add_option("--program", newcomer.program.path, "its path in the machine")->required();
  comes->add_option("--pid", newcomer.program.pid, "its process there")->required();
  comes->callback([&] { chosen = [&] { return runNewcomer(newcomer); }; });
  auto* side = app.add_subcommand("node", "Stand in for the program, for a vgpud of this host");
  side->add_option("--listener", listener, "the address on which descriptor 3 was accepted")->required();
  side->add_option("--run-dir", directory, "the run directory of that vgpud")->required();
  side->add_flag("--quiet", isQuiet, "do not print why a client is refused");
  side->callback([&] { chosen = [&] { return runNodeSide(endpointOf(listener), directory, isQuiet); }; });
  keys::addCommands(app, chosen);
  if (argc > 1 && std::string_view(argv[1]) == "keys") app.name("vgpuctl");  // users know it as a command of vgpuctl
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exitCodeOf("vgpu-relay", chosen);
}

}  // namespace
}  // namespace vgpu::relay

int main(int argc, char** argv) {
  vgpu::rememberIgnoredSignals();
  signal(SIGPIPE, SIG_IGN);
  return vgpu::relay::run(argc, argv);
}
