// The daemon's end of the connection with one program: messages in order, and who is at the other end.
//
// What a program sends is not trusted: a message is bounded, one that is none ends this connection and nothing else.
// Neither is it trusted to read: a program that lets messages pile up loses its connection, and one that sends without
// end leaves the event loop its turns.
#pragma once

#include <capnp/message.h>
#include <kj/async-io.h>
#include <kj/function.h>

#include <string>
#include <vector>

#include "vgpu/control/control.capnp.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::daemon {

// What a program says of itself when it opens a session or answers `reattach`.
struct ProgramOpen {
  std::string name, program, session;
  pid_t pid = 0;                              // as the program sees itself: another number in another pid namespace
  kj::AutoCloseFd segment, hostArena, state;  // if it answers `reattach`; the last is not checked yet
};

class ProgramLink {
 public:
  ProgramLink(kj::AsyncIoContext& io, kj::AutoCloseFd socket);

  const Peer& peer() const { return other; }

  // The first message. Rejects if it is another one, of another version, without its descriptors, or later than 10
  // s.
  kj::Promise<ProgramOpen> receiveOpen();

  // Calls `handle` for every further message. Resolves when the program has closed the connection; rejects at what is
  // no message, and when the program does not read what it is sent.
  kj::Promise<void> serve(kj::Function<void(control::ToNode::Reader)> handle);

  // Queues a message. If the program is gone nobody reads it, and serve() says so; past `mostQueued` it is dropped.
  static constexpr unsigned mostQueued = 64;
  void send(kj::FunctionParam<void(control::ToSession::Builder)> fill,
            kj::Array<kj::AutoCloseFd> descriptors = nullptr);

  // Resolves when all that was queued has been written, or cannot be.
  kj::Promise<void> flushed() { return writes.addBranch(); }

 private:
  kj::Promise<void> serveNext();
  kj::Promise<void> write(capnp::MessageBuilder& message, kj::ArrayPtr<const kj::AutoCloseFd> descriptors);

  kj::AsyncIoContext& io;
  Peer other;
  kj::Own<kj::AsyncCapabilityStream> stream;
  kj::ForkedPromise<void> writes;
  kj::Promise<void> writing = nullptr;
  unsigned queued = 0;    // messages that `writes` has not written
  unsigned received = 0;  // messages
  kj::PromiseFulfillerPair<void> unread = kj::newPromiseAndFulfiller<void>();  // rejected when `queued` is too much
  kj::Maybe<kj::Function<void(control::ToNode::Reader)>> handler;
};

}  // namespace vgpu::daemon
