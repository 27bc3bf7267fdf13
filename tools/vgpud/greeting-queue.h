// Connections from elsewhere that have not been greeted: each gets a process (vgpu-relay), and this process reads no byte of them. The
// number of such processes is limited; other connections wait for their turn, and while any wait, processes whose connection has been
// silent for a while are ended. So a stranger who holds connections open, or opens them again and again, takes bounded memory and
// processes, and delays others without locking them out.
#pragma once

#include <kj/async-io.h>

#include <deque>
#include <functional>
#include <list>
#include <string>

#include "tools/vgpud/processes.h"

namespace vgpu::daemon {

class GreetingQueue final : private kj::TaskSet::ErrorHandler {
 public:
  static constexpr unsigned mostGreeting = 64;  // at the same time
  static constexpr size_t mostWaiting = 256;    // waiting for their turn; a further one is closed
  // While others wait, a connection that has not been greeted for this long is ended.
  static constexpr auto patience = 1 * kj::SECONDS;
  // Per ten seconds, so many refusals are logged; further ones are left out of the log.
  static constexpr unsigned mostSaid = 16;
  static constexpr auto sayingInterval = 10 * kj::SECONDS;

  // `start`: makes the process for a connection; a quiet process does not log why it refuses.
  using Start = std::function<pid_t(int connection, bool isQuiet)>;
  // `address`: for messages.
  GreetingQueue(kj::Timer& timer, Processes& processes, std::string address, Start start);

  void add(kj::AutoCloseFd connection);

 private:
  struct Greeting {
    kj::AutoCloseFd process;
    kj::TimePoint since;
  };
  void serve();
  void startOne(kj::AutoCloseFd connection);
  void makeRoom();
  bool isQuiet();
  void taskFailed(kj::Exception&& exception) override;

  kj::Timer& timer;
  Processes& processes;
  const std::string address;
  const Start start;
  std::list<Greeting> greetings;  // the oldest first
  std::deque<kj::AutoCloseFd> waiting;
  bool isMakingRoom = false;
  unsigned turnedAway = 0;  // since the interval began
  kj::TimePoint intervalBegin;
  kj::TaskSet tasks{*this};
};

}  // namespace vgpu::daemon
