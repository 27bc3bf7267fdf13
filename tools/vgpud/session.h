// A daemon's state of one session: the program's identity, the connection with the program, its worker, and the running operation.
//
// Everything runs in the daemon's event loop. The daemon's table owns a session once it runs; before that, and while it is taken over from
// another daemon, the creating operation owns it. Destroying it closes the connection and kills the worker. Only the identity survives a
// suspend.
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
  // Takes over a connection whose first message was `open`, and begins to read from it. `directory`: the session's.
  Session(kj::AsyncIoContext& io, Processes& processes, kj::Own<ProgramLink> link, const ProgramOpen& open,
          StateDirectory::Shared directory);
  KJ_DISALLOW_COPY(Session);

  // Resolves when the program has ended; rejects when it has sent an invalid message.
  kj::Promise<void> gone() { return left.addBranch(); }

  // Asks the program to close its gate; resolves to the ring's head when the gate is closed. Rejects if the program refuses or does not
  // reply within `seconds`.
  kj::Promise<uint64_t> closeGate(unsigned seconds);

  // Opens the gate again, even if closeGate() has not resolved yet.
  void openGate();

  // Asks the program's relay, if there is one, for the current object list.
  void askForObjects();

  // Makes a relay connect to the node `address`, where the session is to arrive: the program's relay starts it or, if the program shares
  // memory with this host, this daemon does. Rejects if the program cannot do without shared memory.
  kj::Promise<void> approach(std::string address, std::string token);

  // Tells the program, whose gate is closed, that another daemon may take the session; stay() revokes that, and resolves to whether the
  // session is still here.
  void move();
  kj::Promise<bool> stay();
  // For a session in a virtual machine's memory that moves: resolves when the machine has written all of that memory again, unchanged.
  kj::Promise<void> rewrite();
  // For the same, when its machine has left this host: the process that acts as its program here ends. Rejects if it does not end in time;
  // otherwise gone() resolves.
  kj::Promise<void> leave();
  // Revokes a successor: no relay may take the session over any more.
  void forgetSuccessor() { successor = nullptr; }

  // Asks a suspended program to release everything that it uses of this node. Rejects if it refuses; otherwise the program's end (gone())
  // shows that it has done so.
  kj::Promise<void> park();

  // Offers a restored worker to a program that has answered `reattach`; resolves to the handover's number when the program has accepted.
  // Rejects if it does not in time; a program that comes with its virtual machine gets more time.
  kj::Promise<uint64_t> offer(bool comesWithMachine = false);

  // Runs an operation that excludes other operations of this kind. Rejected when interrupt() is called. Throws if one runs already.
  template <typename T>
  kj::Promise<T> exclusively(kj::Promise<T> work) {
    return operation.wrap(kj::mv(work));
  }
  void requireIdle();
  [[noreturn]] void refuseAsBusy() const;
  bool isIdle() const { return operation.isEmpty(); }
  // Whether its program is suspended to that directory, or being resumed from it.
  bool isSuspendedTo(const std::string& path) const {
    return (state == control::State::SUSPENDED || state == control::State::RESUMING) && snapshot == path;
  }

  // Ends the operation that runs on the session, with `why` as its error.
  void interrupt(const std::string& why);

  void describe(control::SessionInfo::Builder info) const;

  std::string id, name, program;
  std::string reattach;              // the socket at which its program waits while suspended
  StateDirectory::Shared directory;  // contains the object list
  StateDirectory::Shared renewal;    // the folder of the snapshot for a new worker, during a renewal and after a failed one
  std::string snapshot;              // the directory to which it was suspended
  std::string memoryIn;              // while it runs: the directory of the latest snapshot with its device memory
  std::string device;
  std::vector<uint32_t> devices;  // the node's devices, by device of the session, as named at its resume; empty: in their order
  pid_t pid = 0;
  control::State state = control::State::RUNNING;
  uint64_t together = 0;  // while it is being suspended with others: a number that they have in common (suspend-together.h)
  int64_t openedSeconds = 0;
  kj::Own<ProgramLink> link;
  kj::Maybe<kj::Own<WorkerProcess>> worker;
  const ProgramPlace place;                 // set if it is in a virtual machine's memory
  const bool relayed;                       // its program is elsewhere (docs/remote.md)
  kj::AutoCloseFd hostArena;                // pinned memory on the worker's host
  const GivenFiles::Shared files;           // files that the program has given for its workers
  kj::Array<kj::AutoCloseFd> memory;        // a new session's segment and host arena, passed from worker to program
  kj::Promise<void> workerWatch = nullptr;  // reacts to the worker's death
  kj::Promise<void> life = nullptr;         // reacts to the program's end
  bool ended = false;                       // the program is gone
  kj::Maybe<kj::Function<void()>> renew;    // called when the program asks for a new worker
  bool isRenewing = false;                  // the program has asked, and has no reply yet
  bool isMoving = false;                    // another daemon may take it, until the program has said that it stays
  // Another daemon owns the session and its state directory now. Shared with the moving operation, which needs it after the session has
  // left the table.
  const std::shared_ptr<bool> moved = std::make_shared<bool>(false);
  bool parked = false;                      // no daemon owns the session, and it has no state directory

 private:
  void handle(control::ToNode::Reader message, kj::Maybe<kj::AutoCloseFd> file);
  void give(capnp::Data::Reader name, kj::Maybe<kj::AutoCloseFd> file);

  kj::AsyncIoContext& io;
  Processes& processes;
  kj::Canceler operation;
  kj::ForkedPromise<void> left = nullptr;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<uint64_t>>> gateAnswer, acceptance;
  const char* asked = "";              // the request for which gateAnswer waits
  kj::Own<kj::AutoCloseFd> successor;  // for a program that shares memory with this host: tools/common/successor.h
  kj::Promise<void> telling = nullptr;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> parking, rewriting;
  int answersToIgnore = 0;  // answers to closeGate requests that were given up
};

// An id for a new session: eight letters and digits that are easy to read aloud.
std::string newSessionId();

}  // namespace vgpu::daemon
