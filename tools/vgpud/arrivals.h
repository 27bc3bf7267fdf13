// Sessions on their way to this node: the target's side of a migration (docs/migration.md).
//
// Each arriving session has a fresh worker, streams of memory, and a token that assigns the streams to it. The source's daemon holds it by
// the capability Arrival; dropping that ends the worker. A session from another host also has files, and a relay that acts as its program
// here. Everything runs in the event loop.
#pragma once

#include <kj/async-io.h>
#include <kj/io.h>
#include <kj/vector.h>

#include <map>
#include <string>

#include "tools/vgpud/guests.h"
#include "tools/vgpud/program-link.h"
#include "tools/vgpud/worker-process.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

class Sessions;

constexpr size_t migrationStreams = 4;

class Arrivals {
 public:
  explicit Arrivals(kj::AsyncIoContext& io) : io(io) {}
  KJ_DISALLOW_COPY(Arrivals);

  using ReceiveContext = capnp::CallContext<control::Node::ReceiveParams, control::Node::ReceiveResults>;
  // Node.receive: a session of another node is to come here. Rejects, with the reason, if it cannot.
  kj::Promise<void> receive(Sessions& sessions, ReceiveContext context);
  // A new connection of streams.sock: assigned to the arrival whose token it sends within 10 s (tools/common/arrival.h), otherwise closed.
  kj::Promise<void> admit(kj::AutoCloseFd socket);

  // The link to the program of a session that comes here with its virtual machine's memory: to the process of guests.h, which nobody else
  // knows.
  kj::Promise<kj::Own<ProgramLink>> programOf(Sessions& sessions, Guests::Newcomer newcomer);

 private:
  class Server;
  // Resolves when this node has no session with that id. Rejects if it has one that does not leave.
  kj::Promise<void> departure(Sessions& sessions, std::string id);
  kj::Promise<void> prepare(Sessions& sessions, ReceiveContext context);

  kj::AsyncIoContext& io;
  std::map<std::string, Server*> waiting;                                       // by token
  std::map<std::string, kj::PromiseFulfiller<kj::Own<ProgramLink>>*> expected;  // likewise: waits for the program of that token
};

}  // namespace vgpu::daemon
