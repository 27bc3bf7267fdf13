#include "tools/relay/relay-loop.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tools/common/reason.h"

namespace vgpu::relay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t spinTime = 200'000;           // nanoseconds
constexpr seconds sayAfter{5}, silentAfter{15};  // without a message
constexpr milliseconds retryAfter{250};
constexpr seconds farewell{2};
// While there is always something to do, the channels are looked at so often.
constexpr unsigned turnsPerLook = 64;

}  // namespace

seconds reconnectLimit() {
  const char* wish = std::getenv("VGPU_LINK_LIMIT");
  return seconds(wish == nullptr ? 60 : std::strtol(wish, nullptr, 10));
}

void RelayLoop::use(kj::AutoCloseFd connection) {
  KJ_SYSCALL(fcntl(connection, F_SETFL, O_NONBLOCK));
  socket = kj::mv(connection);
  heard = said = Clock::now();
  cutSince.reset();
}

void RelayLoop::finish() {
  if (!endsBy) endsBy = Clock::now() + farewell;
}

bool RelayLoop::isDone() const { return endsBy && (link.isAcknowledged() || isCut() || Clock::now() >= *endsBy); }

void RelayLoop::run() {
  Backoff backoff(spinTime);
  for (unsigned turn = 0; !isDone(); ++turn) {
    bool worked = false;
    if (!isCut()) worked |= readSome();
    if (!isCut()) worked |= produce();
    if (!isCut()) {
      link.acknowledge(endsBy.has_value() && worked);
      worked |= writeSome();
    }
    if (worked) {
      backoff = Backoff(spinTime);
      if (turn % turnsPerLook != 0) continue;
    } else if (backoff.spin()) {
      continue;
    }
    sleep(backoff);
  }
}

bool RelayLoop::readSome() {
  bool any = false;
  while (!isCut()) {
    auto space = link.space();
    ssize_t got = recv(socket, space.data(), space.size(), 0);
    if (got > 0) {
      heard = Clock::now();
      link.received(static_cast<size_t>(got));
      while (auto message = link.next()) take(*message);
      any = true;
      if (static_cast<size_t>(got) < space.size()) return any;
    } else if (got == 0) {
      cut("the other side has closed it");
    } else if (errno == EAGAIN) {
      return any;
    } else if (errno != EINTR) {
      cut(std::strerror(errno));
    }
  }
  return any;
}

bool RelayLoop::writeSome() {
  bool any = false;
  while (true) {
    auto bytes = link.unsent();
    if (bytes.empty()) return any;
    ssize_t put = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put > 0) {
      link.sent(static_cast<size_t>(put));
      said = Clock::now();
      any = true;
    } else if (errno == EAGAIN) {
      return any;
    } else if (errno != EINTR) {
      cut(std::strerror(errno));
      return any;
    }
  }
}

void RelayLoop::cut(const std::string& why) {
  socket = nullptr;
  whyCut = why;
  cutSince = Clock::now();
  triedAt = {};
}

void RelayLoop::keepAlive() {
  auto now = Clock::now();
  if (!isCut()) {
    if (now - heard >= silentAfter) return cut("the other side says nothing");
    if (now - said >= sayAfter) link.acknowledge(true);
    return;
  }
  if (now - *cutSince >= reconnectLimit()) return giveUp(whyCut);
  if (now - triedAt < retryAfter) return;
  triedAt = now;
  auto caught = kj::runCatchingExceptions([&] {
    if (auto made = reconnect(); made.get() >= 0) use(kj::mv(made));
  });
  KJ_IF_MAYBE (exception, caught) {
    if (exception->getType() == kj::Exception::Type::FAILED) return giveUp(reasonOf(*exception));
    whyCut = reasonOf(*exception);
  }
}

void RelayLoop::sleep(Backoff& backoff) {
  std::vector<pollfd> polled;
  std::vector<uint32_t> numbers;
  for (auto& [number, channel] : channels) {
    polled.push_back({channel.fd(), POLLIN, 0});
    numbers.push_back(number);
  }
  for (int fd : watched) polled.push_back({fd, POLLIN, 0});
  if (!isCut()) polled.push_back({socket, static_cast<short>(POLLIN | (link.unsent().empty() ? 0 : POLLOUT)), 0});
  uint64_t nanoseconds = mostSleep(backoff);
  if (isCut()) nanoseconds = std::min<uint64_t>(nanoseconds, 50'000'000);
  // What is being written now may come without a wake-up.
  if (!isCut() && !prepareToSleep()) nanoseconds = std::min(nanoseconds, backoff.sleepNanoseconds());
  timespec limit{static_cast<time_t>(nanoseconds / 1'000'000'000), static_cast<long>(nanoseconds % 1'000'000'000)};
  int ready = ppoll(polled.data(), polled.size(), &limit, nullptr);
  awake();
  if (ready > 0) tend(polled, numbers);
  keepAlive();
}

void RelayLoop::tend(const std::vector<pollfd>& polled, const std::vector<uint32_t>& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (polled[i].revents != 0 && channels.contains(numbers[i])) serveChannel(numbers[i]);
  const std::vector<int> watching = watched;
  for (size_t i = 0; i < watching.size(); ++i)
    if (polled[numbers.size() + i].revents != 0) serveWatched(watching[i]);
}

}  // namespace vgpu::relay
