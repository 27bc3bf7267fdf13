// The application's side of the control plane: one connection to vgpud, one thread that answers it while the program
// computes, and the socket on which a daemon finds the program while it is suspended.
//
// Owns the connection, the listening socket and the control thread. The thread blocks all signals, so that the
// program's handlers run on the program's threads. Lock order: the control thread calls SessionControl with no lock
// held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "vgpu/base/memory-file.h"

namespace vgpu::client {

// What the control thread asks of the session. Called on the control thread only.
class SessionControl {
 public:
  virtual ~SessionControl() = default;
  // Keeps new calls out, waits until those inside have entered the ring and the object list is committed; returns the
  // ring's head. Throws kj::Exception where that cannot be, or where `givesUp`, asked while it waits, says so; the gate
  // is open again then.
  virtual uint64_t closeGate(const std::function<bool()>& givesUp) = 0;
  virtual void openGate() = 0;
  // While the gate is closed, a restored worker is offered. accept() gives the number of the handover by which the worker
  // claims the session; withdraw() takes that back, and returns false where the worker has claimed it and consumes.
  virtual uint64_t accept() = 0;
  virtual bool withdraw(uint64_t handover) = 0;
  // The worker is gone: every waiter and every later call is answered with an error. `why` is for a person.
  virtual void lose(const std::string& why) = 0;
};

struct OpenRequest {
  std::string node;  // the daemon, as VGPU_NODE names it: unix:DIR/vgpud.sock, that path, or DIR
  std::string name, program;
};

class Control {
 public:
  // Opens a session with the daemon. Throws kj::Exception with the daemon's reason, or that there is no daemon.
  static std::unique_ptr<Control> open(const OpenRequest& request);
  virtual ~Control() = default;

  // In a child made by fork(): lets go of the connections, which are the parent's. Async-signal-safe.
  virtual void leave() = 0;

  // What the program and its workers share, from the first worker on to the last.
  virtual const MemoryFile& segment() const = 0;
  virtual const MemoryFile& hostArena() const = 0;

  virtual const std::string& session() const = 0;    // id
  virtual const std::string& directory() const = 0;  // state directory; holds the object list

  // Starts the control thread, which serves `session` until the process ends or the connection is lost.
  virtual void serve(SessionControl& session) = 0;

  // Asks for a new worker, with all that the session has, and waits for it. Any thread, outside the gate. Empty when it is
  // there; else why it is not.
  virtual std::string renew() = 0;
};

}  // namespace vgpu::client
