// The daemon's end of the connection with one program: messages in order, and the identity of the program.
//
// A program's messages are not trusted: their size is bounded, and an invalid message ends only this connection. A program that does not
// read its messages loses its connection, and one that sends without pause does not keep the event loop from serving other connections.
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

// The part of a virtual machine's memory that belongs to a session (vgpu/wire/guest-file.h).
struct ProgramPlace {
  std::string guest;  // its name in --guest; empty: the program is in no virtual machine of this host
  uint32_t slot = 0;
  uint64_t claim = 0, fileBytes = 0;

  bool exists() const { return !guest.empty(); }
};
ProgramPlace placeOf(control::GuestPlace::Reader place);

// What a program sends to open a session or to answer `reattach`.
struct ProgramOpen {
  std::string name, program, session;
  pid_t pid = 0;                              // in the program's own pid namespace
  bool relayed = false;                       // opened by a relay: it shares no memory with the worker
  kj::AutoCloseFd segment;                    // always set for a virtual machine's program;
  kj::AutoCloseFd hostArena, state;           // all three are set in an answer to `reattach`; `state` is not checked yet
  ProgramPlace place = {};
  std::optional<std::string> visible;         // for a new session: its program's CUDA_VISIBLE_DEVICES, if that is set
  GivenFiles::Shared files = {};              // the files that it gave to earlier workers
};

class ProgramLink {
 public:
  ProgramLink(kj::AsyncIoContext& io, kj::AutoCloseFd socket);

  const Peer& peer() const { return other; }

  // The first message, and the files that the program gives with it. Rejects if it is a different message, of another version, without its
  // descriptors, or later than 10 s.
  kj::Promise<ProgramOpen> receiveOpen();

  // Calls `handle` for every further message, with its descriptor. Resolves when the program has closed the connection; rejects at an
  // invalid message, and if the program does not read its messages.
  using Handle = kj::Function<void(control::ToNode::Reader, kj::Maybe<kj::AutoCloseFd>)>;
  kj::Promise<void> serve(Handle handle);

  // Queues a message. If the program is gone, the message is lost and serve() reports that; beyond `mostQueued` it is dropped.
  static constexpr unsigned mostQueued = 64;
  void send(kj::FunctionParam<void(control::ToSession::Builder)> fill,
            kj::Array<kj::AutoCloseFd> descriptors = nullptr);

  // Resolves when everything queued has been written, or cannot be written.
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
  unsigned queued = 0;    // messages not written yet
  unsigned received = 0;  // messages
  kj::PromiseFulfillerPair<void> unread = kj::newPromiseAndFulfiller<void>();  // rejected when `queued` exceeds its limit
  kj::Maybe<Handle> handler;
  kj::Array<kj::AutoCloseFd> beside = kj::heapArray<kj::AutoCloseFd>(1);  // with the message that is being received
};

}  // namespace vgpu::daemon
