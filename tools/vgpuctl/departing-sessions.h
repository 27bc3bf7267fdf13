// The sessions of a virtual machine's programs on their way to another node: the requests to the node for each session, and their results.
// follow-machine.cc decides when to make them, by the machine's state.
//
// Used by the main thread, whose event loop is the node client's. Before leave(), dropping this leaves all sessions where they were.
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

  // Forgets all sessions: a migration begins.
  void reset();
  // Asks the target for a worker, and then sends memory ahead. Throws kj::Exception if the target does not accept the session.
  void add(const MachineSession& session);
  // Adds the machine's sessions that are not on their way yet, unless the user has named the sessions. Returns whether there were any.
  bool addLate(const std::string& machine);

  bool areAdvancing() const { return std::ranges::any_of(all, &Departing::isAdvancing); }
  // Resolves when one of them cannot move. Call it once after each reset().
  kj::Promise<void> trouble() { return kj::mv(troubled.promise); }
  std::string firstProblem() const;

  // From now on, programs of the guest that ask for a session get one where the machine finally runs.
  void pauseGuest(const std::string& machine);
  // For sessions that share memory with the machine: holds their programs, until stay() or leave().
  void hold();
  bool areHeld() const { return std::ranges::none_of(all, &Departing::waits); }
  // Throws kj::Exception if a target cannot take its session any more, as far as the node has learned.
  void requireReady();

  // The machine is being handed over to the target: sends one more round for the sessions that move when it runs there.
  void advanceOthers();
  // Makes the sessions leave. When it resolves, each has left or has a problem.
  kj::Promise<void> leave();
  // During leave(): the machine runs where it was.
  kj::Promise<void> stay();
  // After leave(). Sessions that reach the node by network and could not leave try again, unless the machine is back.
  void conclude(bool isBack);
  // The sessions stay; call it before leave().
  void letGo();
  void forget() { all.clear(); }

  size_t count() const { return all.size(); }
  bool haveLeft() const { return std::ranges::all_of(all, &Departing::hasLeft); }
  bool hasAnyLeft() const { return std::ranges::any_of(all, &Departing::hasLeft); }
  // For people, and for scripts.
  std::vector<std::string> lines() const;
  nlohmann::json describe() const;

 private:
  struct Departing {
    MachineSession session;
    control::Departure::Client departure;
    kj::Promise<void> advanced = kj::READY_NOW;
    kj::Promise<void> held = kj::READY_NOW;
    kj::Promise<void> watched = kj::READY_NOW;  // after hold: rejects if the target loses the session
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
  std::deque<Departing> all;                     // a deque, so that elements keep their addresses
  kj::Maybe<control::GuestPause::Client> pause;  // taken before they are held
  kj::PromiseFulfillerPair<void> troubled = kj::newPromiseAndFulfiller<void>();
};

}  // namespace vgpu::ctl
