#include "tools/vgpud/greeting-queue.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/common/reason.h"
#include "tools/vgpud/log.h"

namespace vgpu::daemon {

GreetingQueue::GreetingQueue(kj::Timer& timer, Processes& processes, std::string address, Start start)
    : timer(timer), processes(processes), address(std::move(address)), start(std::move(start)), intervalBegin(timer.now()) {}

void GreetingQueue::add(kj::AutoCloseFd connection) {
  if (waiting.size() == mostWaiting)
    return warnLimited("greeting", 0,
                       fmt::format("connections to {} are closed: {} others wait to be accepted", address, mostWaiting));
  waiting.push_back(kj::mv(connection));
  serve();
}

void GreetingQueue::serve() {
  while (!waiting.empty() && greetings.size() < mostGreeting) {
    kj::AutoCloseFd next = kj::mv(waiting.front());
    waiting.pop_front();
    auto caught = kj::runCatchingExceptions([&] { startOne(kj::mv(next)); });
    KJ_IF_MAYBE (exception, caught) {
      warnLimited("connection", 0, fmt::format("a connection to {} is not served: {}", address, reasonOf(*exception)));
    }
  }
  if (!waiting.empty() && !isMakingRoom) makeRoom();
}

void GreetingQueue::startOne(kj::AutoCloseFd connection) {
  auto relay = processes.adopt(start(connection, isQuiet()));
  auto greeting = greetings.insert(greetings.end(), {kj::mv(relay.handle), timer.now()});
  tasks.add(relay.ended.then([this, greeting](std::string how) {
    if (how != "exited with code 0") ++turnedAway;
    greetings.erase(greeting);
    serve();
  }));
}

// A connection whose process has gone on to serve it is no longer in the list.
void GreetingQueue::makeRoom() {
  isMakingRoom = false;
  if (waiting.empty() || greetings.size() < mostGreeting) return;
  const auto age = timer.now() - greetings.front().since;
  if (age >= patience) syscall(SYS_pidfd_send_signal, greetings.front().process.get(), SIGKILL, nullptr, 0);
  isMakingRoom = true;
  tasks.add(timer.afterDelay(age >= patience ? 10 * kj::MILLISECONDS : patience - age).then([this] { makeRoom(); }));
}

bool GreetingQueue::isQuiet() {
  if (timer.now() - intervalBegin >= sayingInterval) {
    intervalBegin = timer.now();
    turnedAway = 0;
  }
  if (turnedAway < mostSaid) return false;
  warnLimited("turned away", 0, fmt::format("many connections to {} are refused: for a while the reasons are not logged", address));
  return true;
}

void GreetingQueue::taskFailed(kj::Exception&& exception) {
  warnLimited("connection", 0, fmt::format("a connection to {} was lost: {}", address, reasonOf(exception)));
}

}  // namespace vgpu::daemon
