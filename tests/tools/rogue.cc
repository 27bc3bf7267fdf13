// A hostile peer of vgpud: it speaks the protocol by hand, and does not read replies or lies.
//
//   rogue renew N     opens a session; at SIGUSR1 asks N times for a new worker and reads no reply
//   rogue list N      asks N times for the list of sessions and reads no reply
//   rogue give N      opens a session; at SIGUSR1 passes N files for its worker
//   rogue nothing N   the same, N times without a file
//   rogue reattach D  opens a session; once suspended it answers `reattach` with D/sessions/ID instead of its state directory,
//                     after it has made that look like a state directory
//
// Prints "opened ID DIRECTORY", "sent" or "cut off", and for `reattach` "refused: WHY" or "taken". Ends at SIGTERM.
#include <capnp/rpc.capnp.h>
#include <capnp/serialize.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "vgpu/control/channel.h"
#include "vgpu/control/control.capnp.h"
#include "vgpu/control/unix-socket.h"
#include "vgpu/objects/object-list.h"

namespace {

using namespace vgpu;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::string node() {
  const char* path = std::getenv("VGPU_NODE");
  KJ_REQUIRE(path != nullptr, "VGPU_NODE must name a run directory");
  return path;
}

std::string text(capnp::Text::Reader reader) { return {reader.begin(), reader.size()}; }

// Sends until the peer closes the connection.
void flood(ControlChannel& channel, int count, const std::function<void(capnp::MessageBuilder&, int)>& fill) {
  auto caught = kj::runCatchingExceptions([&] {
    for (int i = 0; i < count; ++i) {
      capnp::MallocMessageBuilder message;
      fill(message, i);
      channel.send(message);
    }
  });
  say(caught == nullptr ? "sent" : "cut off");
}

struct Opened {
  std::string id, directory;
  std::vector<kj::AutoCloseFd> memory;
};

void sendOpen(ControlChannel& channel, const std::string& id, kj::ArrayPtr<const int> descriptors) {
  capnp::MallocMessageBuilder message;
  auto open = message.initRoot<control::ToNode>().initOpen();
  open.setVersion(control::VERSION);
  open.setPid(getpid());
  open.setName("rogue");
  open.setProgram("rogue");
  open.setSession(id);
  channel.send(message, descriptors);
}

Opened openSession(ControlChannel& channel) {
  sendOpen(channel, "", nullptr);
  auto answer = channel.receive(2);
  KJ_REQUIRE(answer.has_value() && answer->reader->getRoot<control::ToSession>().isOpened(), "no session");
  auto opened = answer->reader->getRoot<control::ToSession>().getOpened();
  Opened result{text(opened.getSession()), text(opened.getDirectory()), std::move(answer->descriptors)};
  say("opened " + result.id + " " + result.directory);
  return result;
}

void awaitSignal(int wanted) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, wanted);
  int signal;
  sigwait(&signals, &signal);
}

void renew(int count) {
  ControlChannel channel(connectUnix(node() + "/session.sock"));
  openSession(channel);
  awaitSignal(SIGUSR1);
  flood(channel, count,
        [](capnp::MessageBuilder& message, int) { message.initRoot<control::ToNode>().setRenew(); });
  awaitSignal(SIGTERM);
}

void give(int count, bool hasFile) {
  ControlChannel channel(connectUnix(node() + "/session.sock"));
  openSession(channel);
  awaitSignal(SIGUSR1);
  const kj::AutoCloseFd file(open("/dev/null", O_RDWR | O_CLOEXEC));
  const int fd = file;
  auto caught = kj::runCatchingExceptions([&] {
    for (int i = 0; i < count; ++i) {
      capnp::MallocMessageBuilder message;
      const uint64_t name[] = {static_cast<uint64_t>(i), 1};
      message.initRoot<control::ToNode>().setGive(kj::arrayPtr(name, 2).asBytes());
      channel.send(message, kj::arrayPtr(&fd, hasFile ? 1 : 0));
    }
  });
  say(caught == nullptr ? "sent" : "cut off");
  awaitSignal(SIGTERM);
}

void list(int count) {
  ControlChannel channel(connectUnix(node() + "/vgpud.sock"));
  flood(channel, count, [](capnp::MessageBuilder& builder, int i) {
    auto message = builder.initRoot<capnp::rpc::Message>();
    if (i == 0) return message.initBootstrap().setQuestionId(0);
    auto call = message.initCall();
    call.setQuestionId(static_cast<uint32_t>(i));
    call.initTarget().initPromisedAnswer().setQuestionId(0);
    call.setInterfaceId(capnp::typeId<control::Node>());
    call.setMethodId(1);
    call.getSendResultsTo().setCaller();
  });
}

// A directory with an owner file and the right name looks like the state of a session.
std::string disguise(const std::string& folder, const std::string& id) {
  std::string path = folder + "/sessions/" + id;
  std::filesystem::create_directories(path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::ofstream(path + "/owner") << "1 1\n";
  std::ofstream(path + "/precious") << "what another program keeps there\n";
  return path;
}

void reattach(const std::string& folder) {
  ControlChannel channel(connectUnix(node() + "/session.sock"));
  Opened opened = openSession(channel);
  kj::AutoCloseFd listener = listenUnix(opened.directory + "/" + reattachSocketName);
  ObjectList::open(opened.directory)->commit();  // an empty list
  std::string foreign = disguise(folder, opened.id);
  KJ_REQUIRE(channel.receive()->reader->getRoot<control::ToSession>().isCloseGate());
  capnp::MallocMessageBuilder closed;
  closed.initRoot<control::ToNode>().initGateClosed();
  channel.send(closed);
  KJ_REQUIRE(channel.receive()->reader->getRoot<control::ToSession>().isSuspended());
  pollfd waits{listener, POLLIN, 0};
  KJ_SYSCALL(poll(&waits, 1, -1));
  int fd;
  KJ_SYSCALL(fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  ControlChannel finder{kj::AutoCloseFd(fd)};
  KJ_REQUIRE(finder.receive()->reader->getRoot<control::ToSession>().isReattach());
  kj::AutoCloseFd passed(open(foreign.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const int all[] = {opened.memory[0], opened.memory[1], passed};
  sendOpen(finder, opened.id, all);
  auto answer = finder.receive();
  KJ_REQUIRE(answer.has_value(), "no answer");
  auto message = answer->reader->getRoot<control::ToSession>();
  say(message.isRefused() ? "refused: " + text(message.getRefused()) : "taken");
  awaitSignal(SIGTERM);
}

void run(const std::string& mode, const char* argument) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR1);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  if (mode == "renew") return renew(std::atoi(argument));
  if (mode == "give" || mode == "nothing") return give(std::atoi(argument), mode == "give");
  if (mode == "list") return list(std::atoi(argument));
  if (mode == "reattach") return reattach(argument);
  KJ_FAIL_REQUIRE("no such mode", mode.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  auto caught = kj::runCatchingExceptions([&] { run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : ""); });
  KJ_IF_MAYBE (exception, caught) {
    std::fprintf(stderr, "rogue: %s\n", exception->getDescription().cStr());
    return 1;
  }
  return 0;
}
