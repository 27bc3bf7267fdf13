// A daemon's state of one session: the program's identity, the connection with it, its worker, and the running operation.
//
// Everything runs in the daemon's event loop. The daemon's table owns a session once it runs; until then, and while it is taken
// over from another daemon, the operation that creates it does. Destroying it closes the connection and kills the worker. Only
// the identity survives a suspend.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/vgpud/given-files.h"
#include "tools/vgpud/program-link.h"
#include "tools/vgpud/state-directory.h"
#include "tools/vgpud/worker-process.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

class Session {
 public:
  // Takes over a connection whose first message was `open`, and begins to read from it. `directory` is the session's.
  Session(kj::AsyncIoContext& io, Processes& processes, kj::Own<ProgramLink> link, const ProgramOpen& open,
          StateDirectory::Shared directory);
  KJ_DISALLOW_COPY(Session);

  // Resolves when the program has ended; rejects when it has sent an invalid message.
  kj::Promise<void> gone() { return left.addBranch(); }

  // Asks the program to close its gate; resolves to the ring's head when it has. Rejects if the program refuses or does not reply
  // within `seconds`.
  kj::Promise<uint64_t> closeGate(unsigned seconds);

  // Opens it again, even if closeGate() has not resolved yet.
  void openGate();

  // Has the relay beside the program, if there is one, pass on the object list as it is now.
  void askForObjects();

  // Has a relay connect with the node `address`, where the session is to arrive: the one beside the program starts it, or this
  // daemon, if the program shares memory with this host. Rejects if it cannot share none.
  kj::Promise<void> approach(std::string address, std::string token);

  // Tells the program, whose gate is closed, that another daemon may take the session; stay() ends that, and resolves to whether the
  // session is still here.
  void move();
  kj::Promise<bool> stay();
  // Of one in a virtual machine's memory, while it moves: resolves when the machine has written all of it again, unchanged.
  kj::Promise<void> rewrite();
  // Of the same, when its machine is not here any more: the process that is its program ends. Rejects if it does not in time;
  // else that it is gone() says so.
  kj::Promise<void> leave();
  // No relay is to take the session any more.
  void forgetSuccessor() { successor = nullptr; }

  // Asks a suspended program to let go of all that it has of this node. Rejects if it refuses; otherwise its end says that it
  // has.
  kj::Promise<void> park();

  // Offers a restored worker to a program that has replied to `reattach`; resolves to the number of the handover when the program
  // has accepted. Rejects if it does not in time; one that comes with its virtual machine has longer.
  kj::Promise<uint64_t> offer(bool comesWithMachine = false);

  // Begins an operation of which only one may run at a time. Rejected when end() is called. Throws if one runs already.
  template <typename T>
  kj::Promise<T> exclusively(kj::Promise<T> work) {
    return operation.wrap(kj::mv(work));
  }
  void requireIdle();
  [[noreturn]] void refuseAsBusy() const;
  bool isIdle() const { return operation.isEmpty(); }
  // Whether its program is suspended to that directory, or being resumed from there.
  bool isSuspendedTo(const std::string& path) const {
    return (state == control::State::SUSPENDED || state == control::State::RESUMING) && snapshot == path;
  }

  // Ends whatever runs on the session, with `why` as its error.
  void interrupt(const std::string& why);

  void describe(control::SessionInfo::Builder info) const;

  std::string id, name, program;
  std::string reattach;              // the socket at which its program waits while it is suspended
  StateDirectory::Shared directory;  // the object list is in it
  StateDirectory::Shared renewal;    // while it gets a new worker, also if it could not: the folder of that snapshot
  std::string snapshot;              // the directory to which it was suspended
  std::string memoryIn;              // the directory of a snapshot that had its device memory last, while it runs
  std::string device;
  std::vector<uint32_t> devices;  // of the node, by device of the session, as its resume named them; empty: in their order
  pid_t pid = 0;
  control::State state = control::State::RUNNING;
  uint64_t together = 0;  // while it is being suspended with others: a number of theirs (suspend-together.h)
  int64_t openedSeconds = 0;
  kj::Own<ProgramLink> link;
  kj::Maybe<kj::Own<WorkerProcess>> worker;
  const ProgramPlace place;                 // in a virtual machine's memory
  const bool relayed;                       // its program is elsewhere (docs/remote.md)
  kj::AutoCloseFd hostArena;                // where pinned memory of the worker's host is
  const GivenFiles::Shared files;           // of the program's, for its workers
  kj::Array<kj::AutoCloseFd> memory;        // a new session's segment and host arena, on the way from worker to program
  kj::Promise<void> workerWatch = nullptr;  // the daemon's reaction to the worker's death
  kj::Promise<void> life = nullptr;         // and to the program's
  bool ended = false;                       // the program is gone
  kj::Maybe<kj::Function<void()>> renew;    // what to do when the program asks for a new worker
  bool isRenewing = false;                  // it has asked, and has no reply yet
  bool isMoving = false;                    // another daemon may take it; until the program has said that it stays
  // Another daemon owns the session now, and its state directory. Who moves it knows that also when it has left the table.
  const std::shared_ptr<bool> moved = std::make_shared<bool>(false);
  bool parked = false;                      // no daemon does, and it has none

 private:
  void handle(control::ToNode::Reader message, kj::Maybe<kj::AutoCloseFd> file);
  void give(capnp::Data::Reader name, kj::Maybe<kj::AutoCloseFd> file);

  kj::AsyncIoContext& io;
  Processes& processes;
  kj::Canceler operation;
  kj::ForkedPromise<void> left = nullptr;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<uint64_t>>> gateAnswer, acceptance;
  const char* asked = "";              // that which gateAnswer is for
  kj::Own<kj::AutoCloseFd> successor;  // of a program that shares memory with this host: tools/common/successor.h
  kj::Promise<void> telling = nullptr;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> parking, rewriting;
  int answersToIgnore = 0;  // to a closeGate that we gave up on
};

// An id for a new session: eight letters and digits that are easy to read aloud.
std::string newSessionId();

}  // namespace vgpu::daemon
