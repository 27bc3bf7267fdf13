// Connections from elsewhere that have not been greeted: each gets a process (vgpu-relay), and no byte of them is read here. So
// many have one at a time; others wait for their turn, and make those end early that have said nothing for a while. So a stranger
// who holds connections, or makes them again and again, takes bounded memory and processes, and delays others without keeping
// them out.
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
  static constexpr unsigned mostGreeting = 64;  // at a time
  static constexpr size_t mostWaiting = 256;    // for their turn; a further one is closed
  // While others wait, who has not been greeted for so long is ended.
  static constexpr auto patience = 1 * kj::SECONDS;
  // In ten seconds so many may say why they were turned away; what follows is left out of the log.
  static constexpr unsigned mostSaid = 16;
  static constexpr auto sayingInterval = 10 * kj::SECONDS;

  // `start`: makes the process for a connection; a quiet one does not say why it turns somebody away.
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
  unsigned turnedAway = 0;  // since the interval's begin
  kj::TimePoint intervalBegin;
  kj::TaskSet tasks{*this};
};

}  // namespace vgpu::daemon
