// The client of QEMU's monitor, against the test as its peer: which messages it accepts, and its errors for a peer that is not QEMU.
#include "tools/vgpuctl/machine-monitor.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <poll.h>
#include <sys/socket.h>

#include <functional>
#include <thread>

#include "../scratch-directory.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::ctl::monitor {
namespace {

using nlohmann::json;

constexpr const char* greeting = R"({"QMP": {"version": {"qemu": {"major": 7, "minor": 2, "micro": 0}}, "capabilities": []}})";

std::string refusal(kj::FunctionParam<void()> work) {
  auto caught = kj::runCatchingExceptions([&] { work(); });
  KJ_IF_MAYBE (exception, caught) {
    return exception->getDescription().cStr();
  }
  return "";
}

// The peer's end of a connection, on its own thread, because the client blocks.
class Peer {
 public:
  explicit Peer(kj::AutoCloseFd connection) : socket(kj::mv(connection)) {}

  void say(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t put = send(socket, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (put <= 0) return;  // the client has closed the connection
      at += static_cast<size_t>(put);
    }
  }
  // The next command; null if the client has closed the connection.
  json hear() {
    size_t end;
    while ((end = heard.find('\n')) == std::string::npos) {
      char bytes[512];
      const ssize_t got = recv(socket, bytes, sizeof bytes, 0);
      if (got <= 0) return {};
      heard.append(bytes, static_cast<size_t>(got));
    }
    json command = json::parse(heard.substr(0, end));
    heard.erase(0, end + 1);
    return command;
  }
  // Replies to the command with its result.
  void reply(const json& command, const json& value) { say(json{{"return", value}, {"id", command["id"]}}.dump() + "\r\n"); }
  // As QEMU does first.
  void greet() {
    say(std::string(greeting) + "\r\n");
    const json first = hear();
    CHECK(first["execute"] == "qmp_capabilities");
    reply(first, json::object());
  }

 private:
  const kj::AutoCloseFd socket;
  std::string heard;
};

// A monitor's socket, at which `serve` handles the first connection, and the client's event loop.
struct Fixture {
  explicit Fixture(std::function<void(Peer&)> serve)
      : listener(listenUnix(path)), thread([this, serve = std::move(serve)] {
          pollfd polled{listener, POLLIN, 0};  // accept() then does not block
          poll(&polled, 1, -1);
          Peer peer(kj::AutoCloseFd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)));
          serve(peer);
        }) {}
  ~Fixture() { thread.join(); }

  test::ScratchDirectory folder;
  const std::string path = folder.path + "/qmp";
  kj::AutoCloseFd listener;
  std::thread thread;
  kj::AsyncIoContext io = kj::setupAsyncIo();
};

}  // namespace

TEST_CASE("a command gets its own reply, whatever events and other replies arrive before it, and however they are split") {
  Fixture qemu([](Peer& peer) {
    peer.greet();
    const json first = peer.hear(), second = peer.hear();
    CHECK(first["arguments"]["uri"] == "tcp:host:1");
    peer.say(R"({"event": "MIGRATION", "data": {"status": "setup"}})"
             "\r\n");
    peer.reply(second, {{"status", "active"}});
    peer.say(R"({"return": {}, "id": 99999})"
             "\n"
             R"({"return": {}})"
             "\n");  // replies to commands that were not sent
    const std::string late = json{{"return", {{"a", 1}}}, {"id", first["id"]}}.dump() + "\n";
    peer.say(late.substr(0, 7));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    peer.say(late.substr(7) + R"({"event": "RESUME"})"
                              "\n");
    peer.hear();  // until the client has ended
  });
  MachineMonitor monitor(qemu.io, qemu.path);
  auto first = monitor.execute("migrate", {{"uri", "tcp:host:1"}});
  auto second = monitor.execute("query-migrate");
  CHECK(second.wait(qemu.io.waitScope)["status"] == "active");
  CHECK(first.wait(qemu.io.waitScope)["a"] == 1);
  CHECK(monitor.nextEvent().wait(qemu.io.waitScope)["data"]["status"] == "setup");
  CHECK(monitor.nextEvent().wait(qemu.io.waitScope)["event"] == "RESUME");
  CHECK_FALSE(monitor.hasEnded());
}

TEST_CASE("a wait for an event gets the next one, and earlier events can be discarded") {
  Fixture qemu([](Peer& peer) {
    peer.greet();
    peer.say(R"({"event": "STOP"})"
             "\n");
    peer.reply(peer.hear(), json::object());
    peer.reply(peer.hear(), json::object());
    peer.say(R"({"event": "RESUME"})"
             "\n");
    peer.hear();
  });
  MachineMonitor monitor(qemu.io, qemu.path);
  monitor.run("query-name");
  monitor.forgetEvents();
  auto next = monitor.nextEvent();
  monitor.run("query-name");
  CHECK(next.wait(qemu.io.waitScope)["event"] == "RESUME");
}

TEST_CASE("an error contains QEMU's reason, and the next command is executed") {
  Fixture qemu([](Peer& peer) {
    peer.greet();
    peer.say(json{{"error", {{"class", "GenericError"}, {"desc", "no such migration"}}}, {"id", peer.hear()["id"]}}.dump() +
             "\n");
    peer.say(json{{"error", 7}, {"id", peer.hear()["id"]}}.dump() + "\n");
    peer.reply(peer.hear(), {{"name", "guest"}});
    peer.hear();
  });
  MachineMonitor monitor(qemu.io, qemu.path);
  CHECK(refusal([&] { monitor.run("migrate_cancel"); }) == "QEMU: no such migration");
  CHECK(refusal([&] { monitor.run("migrate_cancel"); }) == "QEMU: no reason");
  CHECK(monitor.run("query-name")["name"] == "guest");
}

TEST_CASE("if a monitor closes the connection, pending and later calls fail") {
  Fixture qemu([](Peer& peer) {
    peer.greet();
    peer.hear();
  });
  MachineMonitor monitor(qemu.io, qemu.path);
  auto event = monitor.nextEvent();
  const std::string closed = "QEMU has closed the connection";
  CHECK(refusal([&] { monitor.run("query-status"); }).find(closed) != std::string::npos);
  CHECK(refusal([&] { event.wait(qemu.io.waitScope); }).find(closed) != std::string::npos);
  CHECK(monitor.hasEnded());
  CHECK(refusal([&] { monitor.run("query-status"); }).find(closed) != std::string::npos);
  CHECK(refusal([&] { monitor.nextEvent().wait(qemu.io.waitScope); }).find(closed) != std::string::npos);
}

TEST_CASE("a peer that is not a monitor is reported as such: at the greeting, and later") {
  struct {
    const char* what;
    std::string said, problem;
  } const cases[] = {
      {"garbage", "SSH-2.0-OpenSSH_9\r\n", "not a QMP socket"},
      {"JSON that is no object", "[1, 2]\n", "not a QMP socket"},
      {"a line without an end", std::string(size_t{2} << 20, 'x'), "lines of more than a megabyte"},
      {"nothing", "", "QEMU has closed the connection"},
  };
  for (auto& [what, said, problem] : cases) {
    CAPTURE(what);
    Fixture silent([&](Peer& peer) { peer.say(said); });
    CHECK(refusal([&] { MachineMonitor monitor(silent.io, silent.path); }).find(problem) != std::string::npos);
  }
  for (auto& [what, said, problem] : cases) {
    CAPTURE(what);
    Fixture later([&](Peer& peer) {
      peer.greet();
      peer.hear();
      peer.say(said);
    });
    MachineMonitor monitor(later.io, later.path);
    CHECK(refusal([&] { monitor.run("query-status"); }).find(problem) != std::string::npos);
  }
}

TEST_CASE("a socket without a listener is named, with advice") {
  test::ScratchDirectory folder;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  CHECK(refusal([&] { MachineMonitor monitor(io, folder.path + "/none"); }).find("Start it with -qmp unix:PATH") !=
        std::string::npos);
}

}  // namespace vgpu::ctl::monitor
