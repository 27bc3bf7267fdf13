#include "tools/relay/relay-loop.h"

#include <kj/debug.h>

#include <algorithm>
#include <cstdlib>

#include "tools/common/reason.h"

namespace vgpu::relay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t spinTime = 200'000;  // nanoseconds
constexpr milliseconds retryAfter{250};
constexpr seconds farewell{2};
// While there is always something to do, the channels are polled once per so many turns.
constexpr unsigned turnsPerLook = 64;
// Polling a lane costs a system call.
constexpr unsigned turnsPerHearing = 16;

}  // namespace

seconds reconnectLimit() {
  const char* wish = std::getenv("VGPU_LINK_LIMIT");
  return seconds(wish == nullptr ? 60 : std::strtol(wish, nullptr, 10));
}

void RelayLoop::use(std::unique_ptr<ByteStream> connection) {
  stream = std::move(connection);
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
    bool worked = (turn % turnsPerHearing == 0 || lanes.isAwaited()) && hearLanes();
    if (!isCut()) worked |= readSome();
    if (!isCut()) worked |= produce();
    if (!isCut()) {
      if (!isSilent()) link.acknowledge(endsBy.has_value() && link.owesAcknowledgement());
      worked |= writeSome();
      worked |= lanes.give();
    }
    if (worked) {
      backoff = Backoff(spinTime);
      if (turn % turnsPerLook != 0) continue;
    } else if (Backoff::isLong() && backoff.spin()) {  // with few cores, the worker needs the time that even system calls take
      continue;
    }
    sleep(backoff);
  }
}

bool RelayLoop::hearLanes() {
  const bool any = lanes.hear();
  if (!isCut() && !lanes.whyEnded().empty()) cut("a further connection of the session: " + lanes.whyEnded());
  return any;
}

bool RelayLoop::takeMessages() {
  bool any = false;
  for (; auto message = link.next(); any = true) take(*message);
  return any;
}

bool RelayLoop::readSome() {
  bool any = takeMessages();  // messages whose bytes beside them have arrived
  while (!isCut()) {
    auto space = link.space();
    if (space.empty()) return any;
    size_t got = stream->read(space);
    if (got > 0) {
      heard = Clock::now();
      link.received(got);
      takeMessages();
      any = true;
    }
    if (got == space.size()) continue;
    if (!isCut() && stream->hasEnded()) cut(stream->whyEnded());
    return any;
  }
  return any;
}

bool RelayLoop::writeSome() {
  bool any = false;
  for (auto bytes = link.unsent(); !bytes.empty(); bytes = link.unsent()) {
    size_t put = stream->write(bytes);
    if (put > 0) {
      link.sent(put);
      said = Clock::now();
      any = true;
    } else {
      if (stream->hasEnded()) cut(stream->whyEnded());
      return any;
    }
  }
  return any;
}

void RelayLoop::cut(const std::string& why) {
  whyCut = why;  // copied, because it may be a member of the stream
  stream = nullptr;
  lanes.end();
  cutSince = Clock::now();
  triedAt = {};
}

void RelayLoop::keepAlive() {
  auto now = Clock::now();
  if (!isCut()) {
    const auto silent = std::chrono::floor<seconds>(now - std::max(heard, lanes.lastArrival()));
    if (silent >= mostSilence()) return cut("the other side sends nothing");
    if (!link.isWaitingBeside()) waitedFrom = now;
    if (now - std::max(waitedFrom, lanes.lastArrival()) >= mostSilence()) return cut("the further connections send nothing");
    if (now - said >= saysAfter() && !isSilent()) link.acknowledge(true);
    return;
  }
  if (!canReconnect() || now - *cutSince >= mostCut()) return giveUp(whyCut);
  if (lanes.count() != 0) return;  // lanes must end first, because they may still write into the segment
  if (now - triedAt < retryAfter) return;
  triedAt = now;
  auto caught = kj::runCatchingExceptions([&] {
    if (auto made = reconnect()) use(std::move(made));
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
  const size_t watching = watched.size();
  for (int fd : watched) polled.push_back({fd, POLLIN, 0});
  if (!isCut()) polled.push_back({stream->fd(), stream->eventsOf(!link.space().empty(), !link.unsent().empty()), 0});
  lanes.addTo(polled);
  uint64_t nanoseconds = mostSleep(backoff);
  if (!isCut()) nanoseconds = std::min(nanoseconds, stream->mostSleep());
  if (isCut()) nanoseconds = std::min<uint64_t>(nanoseconds, 50'000'000);
  // A frame that is being written may be completed without a wake-up.
  if (!isCut() && !prepareToSleep()) nanoseconds = std::min(nanoseconds, backoff.sleepNanoseconds());
  timespec limit{static_cast<time_t>(nanoseconds / 1'000'000'000), static_cast<long>(nanoseconds % 1'000'000'000)};
  int ready = ppoll(polled.data(), polled.size(), &limit, nullptr);
  awake();
  hearLanes();
  const std::span<const pollfd> all(polled);
  if (ready > 0) tend(all.first(numbers.size()), numbers, all.subspan(numbers.size(), watching));
  keepAlive();
}

// Serving one descriptor may end another one that was polled, so each is looked up again.
void RelayLoop::tend(std::span<const pollfd> polledChannels, const std::vector<uint32_t>& numbers, std::span<const pollfd> polledWatched) {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (polledChannels[i].revents != 0 && channels.contains(numbers[i])) serveChannel(numbers[i]);
  for (const pollfd& one : polledWatched)
    if (one.revents != 0 && std::ranges::find(watched, one.fd) != watched.end()) serveWatched(one.fd);
}

}  // namespace vgpu::relay
