// Sessions on their way to this node: the target's side of a migration (docs/migration.md).
//
// Each has a fresh worker, streams of memory, and a token by which the streams find it; the source's daemon holds it by the
// capability Arrival, and its end gives the worker up. One that comes from another host also has files, and a relay that is its
// program here. Everything runs in the event loop.
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
  // A session of another node that wants to come. Rejects, saying why it cannot.
  kj::Promise<void> receive(Sessions& sessions, ReceiveContext context);
  // A new connection of streams.sock: belongs to the arrival whose token it sends within 10 s (tools/common/arrival.h), else it
  // is closed.
  kj::Promise<void> admit(kj::AutoCloseFd socket);

  // The program of a session that comes here with its virtual machine's memory: the process of guests.h, of which nobody else
  // knows.
  kj::Promise<kj::Own<ProgramLink>> programOf(Sessions& sessions, Guests::Newcomer newcomer);

 private:
  class Server;
  // Resolves when no session of that id is here. Rejects if there is one that does not leave.
  kj::Promise<void> departure(Sessions& sessions, std::string id);
  kj::Promise<void> prepare(Sessions& sessions, ReceiveContext context);

  kj::AsyncIoContext& io;
  std::map<std::string, Server*> waiting;                                       // by token
  std::map<std::string, kj::PromiseFulfiller<kj::Own<ProgramLink>>*> expected;  // of programs, likewise
};

}  // namespace vgpu::daemon
