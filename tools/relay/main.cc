// vgpu-relay: one end of what connects a program with a node elsewhere (docs/remote.md).
//
//   vgpu-relay program   started by `vgpuctl run`: listens as a vgpud does, and makes a process for each connection
//   vgpu-relay node      started by vgpud for each connection from elsewhere, which is its descriptor 3
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

#include "tools/common/installation.h"
#include "tools/common/reason.h"
#include "tools/common/spawn.h"
#include "tools/relay/node-side.h"
#include "tools/relay/program-side.h"
#include "tools/relay/splice.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::relay {
namespace {

constexpr int givenConnection = 3;
constexpr std::chrono::seconds greetingLimit{10};

// In a process of its own, so that what becomes of one connection is nothing to the others.
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
  kj::AutoCloseFd remote = connectTo(node);
  greet(remote, {GreetingFor::control}, node.text(), Clock::now() + greetingLimit);
  splice(kj::mv(connection), kj::mv(remote));
}

int runProgramSide(const std::string& address, const std::string& directory) {
  auto node = parseEndpoint(address);
  if (!node) fail("\"" + address + "\" is no address of a node: give tcp:HOST:PORT");
  signal(SIGCHLD, SIG_IGN);  // children are reaped by the system
  KJ_SYSCALL(mkdir((directory + "/sessions").c_str(), 0700));
  kj::AutoCloseFd programs = listenUnix(directory + "/session.sock"), tools = listenUnix(directory + "/vgpud.sock");
  std::printf("vgpu-relay: ready\n");
  std::fflush(stdout);
  while (true) {
    pollfd polled[] = {{programs, POLLIN, 0}, {tools, POLLIN, 0}};
    if (poll(polled, 2, -1) < 0 && errno != EINTR) KJ_FAIL_SYSCALL("poll", errno);
    for (auto& one : polled) {
      int fd = one.revents != 0 ? accept4(one.fd, nullptr, nullptr, SOCK_CLOEXEC) : -1;
      if (fd < 0) continue;
      kj::AutoCloseFd connection(fd);
      const bool isProgram = one.fd == programs.get();
      inChild([&] {
        programs = nullptr;
        tools = nullptr;
        if (isProgram)
          serveProgram(kj::mv(connection), *node, directory);
        else
          serveTool(kj::mv(connection), *node);
      });
    }
  }
}

// Until it is greeted, a connection is vgpud's child, which counts them; a session's process lives as long as its program,
// whatever becomes of that vgpud.
void leaveParent() {
  pid_t child;
  KJ_SYSCALL(child = fork());
  if (child != 0) _exit(0);
  setsid();
}

int runNodeSide(const std::string& directory) {
  kj::AutoCloseFd connection(givenConnection);
  KJ_SYSCALL(fcntl(connection, F_SETFD, FD_CLOEXEC));
  const auto limit = Clock::now() + greetingLimit;
  std::string problem;
  if (!mayUseNode(connection, problem)) fail("a connection from elsewhere is not served: " + problem);
  Greeting greeting = receiveGreeting(connection, limit);
  switch (greeting.what) {
    case GreetingFor::control:
      acceptGreeting(connection, 0, limit);
      leaveParent();
      splice(kj::mv(connection), connectUnix(directory + "/vgpud.sock"));
      return 0;
    case GreetingFor::session: {
      if (NodeSide::passOn(connection, directory, greeting)) return 0;
      if (greeting.received != 0) {
        refuseGreeting(connection, "it has no such session any more", limit);
        return 0;
      }
      acceptGreeting(connection, 0, limit);
      leaveParent();
      NodeSide(kj::mv(connection), directory, greeting.token).run();
      return 0;
    }
    default:
      refuseGreeting(connection, "it asks for what there is not", limit);
      return 1;
  }
}

int run(int argc, char** argv) {
  std::string node, directory;
  std::function<int()> chosen;
  CLI::App app{"One end of what connects a program with a node elsewhere. Started by vgpuctl and vgpud.", "vgpu-relay"};
  app.set_version_flag("--version", std::string("vgpu-relay ") + productVersion);
  app.require_subcommand(1);
  auto* program = app.add_subcommand("program", "Be the node for programs of this host");
  program->add_option("--node", node, "tcp:HOST:PORT")->required();
  program->add_option("--run-dir", directory, "an empty folder for sockets and state")->required();
  program->callback([&] { chosen = [&] { return runProgramSide(node, directory); }; });
  auto* side = app.add_subcommand("node", "Be the program for a vgpud of this host");
  side->add_option("--run-dir", directory, "of that vgpud")->required();
  side->callback([&] { chosen = [&] { return runNodeSide(directory); }; });
  CLI11_PARSE(app, argc, argv);
  return exitCodeOf("vgpu-relay", chosen);
}

}  // namespace
}  // namespace vgpu::relay

int main(int argc, char** argv) {
  vgpu::rememberIgnoredSignals();
  signal(SIGPIPE, SIG_IGN);
  return vgpu::relay::run(argc, argv);
}
