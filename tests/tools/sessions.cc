#include "tools/vgpud/sessions.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "../scratch-directory.h"
#include "tools/vgpud/run-directory.h"

namespace vgpu::daemon {
namespace {

// A session of this process, all in one state directory; `program` is the program's end of its connection.
struct OwnSession {
  OwnSession(kj::AsyncIoContext& io, Processes& processes, const StateDirectory::Shared& state) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    program = kj::AutoCloseFd(ends[1]);
    const int least = 0;  // size of the send buffer
    REQUIRE(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least) == 0);
    ProgramOpen open;
    open.session = "abcdefgh";
    open.pid = getpid();
    session = kj::heap<Session>(io, processes, kj::heap<ProgramLink>(io, kj::AutoCloseFd(ends[0])), open, state);
  }
  kj::AutoCloseFd program;
  kj::Own<Session> session;
};

}  // namespace

TEST_CASE("the end of a connection from before a resume does not remove the session's present state directory") {
  test::ScratchDirectory scratch;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  Processes processes(io.unixEventPort);
  WorkerPool pool(io, processes, {}, 0, 0 * kj::SECONDS);
  RunDirectory directory(scratch.path + "/run");
  PinnedPool pinned(0);
  Sessions sessions(io, processes, pool, directory, pinned, false);
  auto state = StateDirectory::make(directory.sessions(), "abcdefgh", getpid());
  OwnSession before(io, processes, state), resumed(io, processes, state);
  ProgramLink& link = *before.session->link;
  sessions.keep(kj::mv(before.session), {});
  // The program has not read everything when the session is resumed, so its old connection still exists until the program closes it.
  const std::string text(10'000, '.');
  for (int i = 0; i < 3; ++i) link.send([&](control::ToSession::Builder message) { message.setLost(text.c_str()); });
  sessions.keep(kj::mv(resumed.session), {});
  REQUIRE(shutdown(before.program, SHUT_WR) == 0);
  io.waitScope.poll();  // the daemon notices the closed connection
  sessions.removalsEnded().wait(io.waitScope);
  CHECK(std::filesystem::exists(state->path()));
  CHECK(sessions.find("abcdefgh") != nullptr);
}

}  // namespace vgpu::daemon
