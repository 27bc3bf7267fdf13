// The sessions of a virtual machine's programs on their way to another node: what each is asked, and what becomes of it. When
// that happens follow-machine.cc decides, by what the machine does.
//
// Of the main thread, whose event loop is the node client's. Until leave(), letting go of them leaves all where they were.
#pragma once

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string>
#include <vector>

#include "tools/common/node-client.h"
#include "tools/vgpuctl/machine.h"

namespace vgpu::ctl {

class DepartingSessions {
 public:
  DepartingSessions(NodeClient& client, const MachineOptions& options, std::string target)
      : client(client), options(options), target(std::move(target)) {}

  // None, for a migration that begins.
  void reset();
  // Asks the target for a worker, and then sends memory ahead. Throws kj::Exception if the target does not take the session.
  void add(const MachineSession& session);
  // Those of the machine that are not on their way yet, unless somebody has said which sessions it is about. Whether there are
  // any.
  bool addLate(const std::string& machine);

  bool areAdvancing() const { return std::ranges::any_of(all, &Departing::isAdvancing); }
  // Resolves when one of them cannot go. Once for each reset().
  kj::Promise<void> trouble() { return kj::mv(troubled.promise); }
  std::string firstProblem() const;

  // Programs of the guest that ask for a session from now on get it where the machine runs in the end.
  void pauseGuest(const std::string& machine);
  // Those that share memory with the machine: their programs are held, until they stay() or leave().
  void hold();
  bool areHeld() const { return std::ranges::none_of(all, &Departing::waits); }
  // Throws kj::Exception if a target cannot take its session any more, as far as the node has learned of it.
  void requireReady();

  // The machine has been let go to the target: one more round of those that come when it runs.
  void advanceOthers();
  // Has them go. They have left, or know their problem, when it resolves.
  kj::Promise<void> leave();
  // Meanwhile: the machine runs where it was.
  kj::Promise<void> stay();
  // After leave(). Those that reach the node by network and could not leave try again, unless the machine is back.
  void conclude(bool isBack);
  // They stay, before leave().
  void letGo();
  void forget() { all.clear(); }

  size_t count() const { return all.size(); }
  bool haveLeft() const { return std::ranges::all_of(all, &Departing::hasLeft); }
  bool hasAnyLeft() const { return std::ranges::any_of(all, &Departing::hasLeft); }
  // For people, and for programs.
  std::vector<std::string> lines() const;
  nlohmann::json describe() const;

 private:
  struct Departing {
    MachineSession session;
    control::Departure::Client departure;
    kj::Promise<void> advanced = kj::READY_NOW;
    kj::Promise<void> held = kj::READY_NOW;
    kj::Promise<void> watched = kj::READY_NOW;  // from then on: whether the target still has it
    bool isAdvancing = false, isHeld = false, hasLeft = false;
    std::string device, problem;
    double heldSeconds = 0;

    bool sharesMemory() const { return session.sharesMemory(); }
    bool waits() const { return sharesMemory() && !isHeld; }
  };

  auto sharing() { return all | std::views::filter(&Departing::sharesMemory); }
  void advance(Departing& one);
  void hold(Departing& one);
  kj::Promise<void> leave(Departing& one);
  void moveAgain(Departing& one);
  void hasTrouble(Departing& one, const kj::Exception& exception);
  std::string lineOf(const Departing& one) const;

  NodeClient& client;
  const MachineOptions& options;
  const std::string target;
  std::deque<Departing> all;                     // which stay in place
  kj::Maybe<control::GuestPause::Client> pause;  // from before they are held
  kj::PromiseFulfillerPair<void> troubled = kj::newPromiseAndFulfiller<void>();
};

}  // namespace vgpu::ctl
