// A program's side of the control plane, and daemons played by the test.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../scratch-directory.h"
#include "intercept/session/control.h"
#include "vgpu/control/channel.h"
#include "vgpu/control/control.capnp.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::client {

// Records the requests to the session, for the test's thread to wait for.
class Recorded final : public SessionControl {
 public:
  uint64_t closeGate(const std::function<bool()>&) override {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    allSignalsBlocked = sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGUSR1) == 1;
    if (refuses) throw kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::str("not now"));
    add("close");
    return 42;
  }
  void openGate() override { add("open"); }
  uint64_t accept() override {
    onAccept();
    return handover += 2;
  }
  bool withdraw(uint64_t) override { return !claimed; }
  std::string comeApart(const std::function<bool()>&) override { return "it is a double"; }
  void leaveHost() override {}
  void leaveFiles() override { add("leave"); }
  void enterFiles(const std::string& directory) override {
    if (refuses) throw kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::str("no space"));
    add("enter " + directory);
  }
  void lose(const std::string& why) override { add("lose: " + why); }

  // The events up to the one that begins with `last`.
  std::vector<std::string> until(const std::string& last) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !events.empty() && events.back().starts_with(last); });
    return events;
  }

  std::atomic<bool> refuses{false};
  std::function<void()> onAccept = [] {};
  std::atomic<bool> claimed{false};  // by the worker
  uint64_t handover = 0;
  bool allSignalsBlocked = false;

 private:
  void add(std::string event) {
    {
      std::lock_guard lock(mutex);
      events.push_back(std::move(event));
    }
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> events;
};

// One connection, seen from the daemon.
class Daemon {
 public:
  explicit Daemon(kj::AutoCloseFd socket) : channel(kj::mv(socket)) {}

  template <typename Fill>
  void say(Fill&& fill, kj::ArrayPtr<const int> descriptors = nullptr) {
    capnp::MallocMessageBuilder builder;
    fill(builder.initRoot<control::ToSession>());
    channel.send(builder, descriptors);
  }
  void sayOpened(const char* id, const char* directory, kj::ArrayPtr<const int> descriptors = nullptr) {
    say(
        [&](control::ToSession::Builder message) {
          auto opened = message.initOpened();
          opened.setSession(id);
          opened.setDirectory(directory);
        },
        descriptors);
  }
  void giveSession(const char* id, const char* directory, const MemoryFile& segment, const MemoryFile& arena) {
    const int both[] = {segment.fd(), arena.fd()};
    sayOpened(id, directory, both);
  }
  void suspendTo(const char* directory) {
    say([](control::ToSession::Builder message) { message.setCloseGate(); });
    CHECK(hear().isGateClosed());
    say([&](control::ToSession::Builder message) { message.setSuspended(directory); });
  }
  // All messages of a resume that a daemon sends after the program has answered `reattach`.
  void handOver() {
    sayOpened("s1", "");
    CHECK(hear().isAccepted());
    say([](control::ToSession::Builder message) { message.setOpenGate(); });
  }
  control::ToNode::Reader hear(size_t descriptors = 0) {
    heard = channel.receive(descriptors);
    REQUIRE(heard);
    return heard->reader->getRoot<control::ToNode>();
  }
  bool isClosed() { return !channel.receive(); }

  ControlChannel channel;
  std::optional<ControlMessage> heard;
};

struct Node {
  test::ScratchDirectory folder{"/tmp"};
  const std::string& path = folder.path;
  kj::AutoCloseFd listener = listenUnix(path + "/session.sock");

  Daemon accept() {
    int fd;
    do {
      fd = ::accept(listener, nullptr, nullptr);
    } while (fd < 0 && errno == EAGAIN);
    REQUIRE(fd >= 0);
    return Daemon(kj::AutoCloseFd(fd));
  }
};

// A program with an open session, and its daemon.
struct Program {
  Node node;
  MemoryFile segment = MemoryFile::create("segment", 4096), arena = MemoryFile::create("arena", 8192);
  Recorded session;
  std::optional<Daemon> daemon;
  std::string reattach = node.path + "/" + reattachSocketName;
  std::unique_ptr<Control> control;

  Program() {
    std::thread opener([this] { control = Control::open({"unix:" + node.path + "/vgpud.sock", "n", "/p"}); });
    daemon.emplace(node.accept());
    auto open = daemon->hear(2).getOpen();
    CHECK(open.getVersion() == control::VERSION);
    CHECK(open.getPid() == getpid());
    CHECK(std::string(open.getName().cStr()) == "n");
    CHECK(open.getSession().size() == 0);
    REQUIRE(daemon->heard->descriptors.empty());
    daemon->giveSession("s1", node.path.c_str(), segment, arena);
    opener.join();
    CHECK(control->segment().bytes() == 4096);
    CHECK(control->hostArena().bytes() == 8192);
    control->serve(session);
  }

  // Another daemon that has reattached the program.
  Daemon find(const char* id) {
    Daemon other(connectUnix(reattach));
    other.say([&](control::ToSession::Builder message) { message.setReattach(id); });
    return other;
  }
};

}  // namespace vgpu::client
