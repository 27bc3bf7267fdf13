// The daemon's end of the connection with one program: messages in order, and the identity of the program.
//
// A program's messages are not trusted: their size is bounded, and an invalid one ends this connection and nothing else. Nor is
// it trusted to read: a program that does not read its messages loses its connection, and one that sends without pause does not
// keep the event loop from other connections.
#pragma once

#include <capnp/message.h>
#include <kj/async-io.h>
#include <kj/function.h>

#include <string>
#include <vector>

#include "tools/vgpud/given-files.h"
#include "vgpu/control/control.capnp.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::daemon {

// Which part of a virtual machine's memory a session has (vgpu/wire/guest-file.h).
struct ProgramPlace {
  std::string guest;  // as --guest names it; empty: its program is in no virtual machine of this host
  uint32_t slot = 0;
  uint64_t claim = 0, fileBytes = 0;

  bool exists() const { return !guest.empty(); }
};
ProgramPlace placeOf(control::GuestPlace::Reader place);

// What a program sends when it opens a session or replies to `reattach`.
struct ProgramOpen {
  std::string name, program, session;
  pid_t pid = 0;                              // as the program sees itself: another number in another pid namespace
  bool relayed = false;                       // by a relay: it shares no memory with the worker
  kj::AutoCloseFd segment;                    // of a virtual machine's program always,
  kj::AutoCloseFd hostArena, state;           // and these in the reply to `reattach`; the last is not checked yet
  ProgramPlace place = {};
  std::optional<std::string> visible;         // of a new session: its program's CUDA_VISIBLE_DEVICES, if that is set
  GivenFiles::Shared files = {};              // those that it has given before
};

class ProgramLink {
 public:
  ProgramLink(kj::AsyncIoContext& io, kj::AutoCloseFd socket);

  const Peer& peer() const { return other; }

  // The first message, and the files that the program gives with it. Rejects if it is a different message, of another version, without
  // its descriptors, or later than 10 s.
  kj::Promise<ProgramOpen> receiveOpen();

  // Calls `handle` for every further message, with the descriptor beside it. Resolves when the program has closed the connection;
  // rejects at an invalid message, and if the program does not read its messages.
  using Handle = kj::Function<void(control::ToNode::Reader, kj::Maybe<kj::AutoCloseFd>)>;
  kj::Promise<void> serve(Handle handle);

  // Queues a message. If the program is gone it is not read, and serve() reports that; past `mostQueued` it is dropped.
  static constexpr unsigned mostQueued = 64;
  void send(kj::FunctionParam<void(control::ToSession::Builder)> fill,
            kj::Array<kj::AutoCloseFd> descriptors = nullptr);

  // Resolves when all that was queued has been written, or cannot be.
  kj::Promise<void> flushed() { return writes.addBranch(); }

 private:
  kj::Promise<void> serveNext();
  kj::Promise<ProgramOpen> receiveFiles(ProgramOpen open, uint32_t count);
  kj::Promise<void> write(capnp::MessageBuilder& message, kj::ArrayPtr<const kj::AutoCloseFd> descriptors);

  kj::AsyncIoContext& io;
  Peer other;
  kj::Own<kj::AsyncCapabilityStream> stream;
  kj::ForkedPromise<void> writes;
  kj::Promise<void> writing = nullptr;
  unsigned queued = 0;    // messages that `writes` has not written
  unsigned received = 0;  // messages
  kj::PromiseFulfillerPair<void> unread = kj::newPromiseAndFulfiller<void>();  // rejected when `queued` is too much
  kj::Maybe<Handle> handler;
  kj::Array<kj::AutoCloseFd> beside = kj::heapArray<kj::AutoCloseFd>(1);  // of the message that is being received
};

}  // namespace vgpu::daemon
