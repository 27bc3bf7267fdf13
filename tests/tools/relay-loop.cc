// Events of a relay's loop when serving one descriptor closes another.
#include "tools/relay/relay-loop.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace vgpu::relay {
namespace {

std::pair<kj::AutoCloseFd, kj::AutoCloseFd> makeEnds() {
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  return {kj::AutoCloseFd(ends[0]), kj::AutoCloseFd(ends[1])};
}

// A loop with a control channel that has ended, and two descriptors of which only the first is readable. Serving the channel closes the
// first descriptor and ends the loop.
class LettingGo final : public RelayLoop {
 public:
  LettingGo() {
    beginCut();  // this needs no connection
    watch(first.first);
    watch(second.first);
    channels.emplace(0u, ControlChannel(kj::mv(channel.first)));
    channel.second = nullptr;
    KJ_SYSCALL(write(first.second, "", 1));
  }

  std::vector<int> served;
  std::pair<kj::AutoCloseFd, kj::AutoCloseFd> first = makeEnds(), second = makeEnds(), channel = makeEnds();

 protected:
  void take(const LinkMessage&) override {}
  bool produce() override { return false; }
  void serveChannel(uint32_t number) override {
    channels.erase(number);
    unwatch(first.first);
    finish();
  }
  void serveWatched(int fd) override { served.push_back(fd); }
  std::unique_ptr<ByteStream> reconnect() override { return nullptr; }
  void giveUp(const std::string&) override { finish(); }
  bool prepareToSleep() override { return true; }
  uint64_t mostSleep(Backoff&) override { return 1'000'000'000; }
};

TEST_CASE("a descriptor that was closed meanwhile is not served, nor another one with its number") {
  LettingGo relay;
  relay.run();
  CHECK(relay.served.empty());
}

}  // namespace
}  // namespace vgpu::relay
