// The program's side of the control plane: a connection to vgpud, a thread that serves it while the program computes, and the socket on
// which a daemon reaches the program while it is suspended.
//
// Owns the connection, the listening socket and the control thread. The thread blocks all signals, so that the program's handlers run on
// the program's threads. Lock order: the control thread calls SessionControl with no lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "vgpu/base/memory-file.h"

namespace vgpu::client {

class GivenFiles;  // given-files.h

// The session's operations for the control thread. Called on the control thread only.
class SessionControl {
 public:
  virtual ~SessionControl() = default;
  // Closes the gate to new calls, waits until the threads inside have published their frames and the object list is committed; returns the
  // head of the first device's ring, for observers. Completes pending frees whose work has finished before. Throws kj::Exception if it
  // fails, or if `givesUp`, polled during the wait, returns true; the gate is then open again.
  virtual uint64_t closeGate(const std::function<bool()>& givesUp) = 0;
  virtual void openGate() = 0;
  // For a restored worker that a daemon offers while the gate is closed. accept() returns the number of the handover by which the worker
  // claims the session; withdraw() cancels it, or returns false if the worker has claimed the session and consumes frames.
  virtual uint64_t accept() = 0;
  virtual bool withdraw(uint64_t handover) = 0;
  // Both end the sharing of host memory, for a move to another host. comeApart(), with the gate open: returns the reason if that is
  // impossible or `givesUp`, polled during the wait, returns true; else empty. leaveHost(), with the gate closed: the session leaves.
  virtual std::string comeApart(const std::function<bool()>& givesUp) = 0;
  virtual void leaveHost() = 0;
  // With the gate closed. leaveFiles() closes the object list's file. enterFiles() writes the whole list into `directory`, which has none
  // yet, perhaps in a process restored meanwhile; it throws kj::Exception if it fails, and may be called again.
  virtual void leaveFiles() = 0;
  virtual void enterFiles(const std::string& directory) = 0;
  // The worker is gone: every waiting and every later call returns an error. `why` is the message for the user.
  virtual void lose(const std::string& why) = 0;
};

struct OpenRequest {
  std::string node;  // the daemon, as VGPU_NODE names it: unix:DIR/vgpud.sock, that path, or DIR
  std::string name, program;
  std::optional<std::string> visible;  // the value of CUDA_VISIBLE_DEVICES, if it is set
};

class Control {
 public:
  // Opens a session with the daemon. Throws kj::Exception with the daemon's reason, or if there is no daemon; InvalidDevices with its
  // reason.
  static std::unique_ptr<Control> open(const OpenRequest& request);
  virtual ~Control() = default;

  // In a forked child: closes its copies of the connections, which belong to the parent. Async-signal-safe.
  virtual void leave() = 0;

  // The memory that the program shares with all its workers, from the first to the last.
  virtual const MemoryFile& segment() const = 0;
  virtual const MemoryFile& hostArena() const = 0;

  virtual const std::string& session() const = 0;    // id
  virtual const std::string& directory() const = 0;  // state directory; holds the object list

  // Starts the control thread, which serves `session` until the process ends or the connection is lost.
  virtual void serve(SessionControl& session) = 0;

  // Requests a new worker that takes over the session's whole state, and waits for it. Any thread, outside the gate. Empty on success; else
  // the reason.
  virtual std::string renew() = 0;

  // The files that the program shares with its workers.
  virtual GivenFiles& files() = 0;
};

}  // namespace vgpu::client
