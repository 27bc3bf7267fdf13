// The first bytes of every connection from elsewhere. Their size is fixed, so that a stranger cannot make a node read more.
//
//   to the node     "VGPULINK" · version (4) · what (4) · token (16) · messages received, or a connection's number (8) ·
//                   attempt (8) · 0 (16)
//   from the node   "VGPULINK" · version (4) · status (4) · messages received (8) · bytes of the reason (4) · connection (4) ·
//   reason
//
// A node of another version replies in the same format, so that both sides can name the versions.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "vgpu/control/byte-stream.h"

namespace vgpu {

constexpr uint32_t greetingVersion = 4;

enum class GreetingFor : uint32_t {
  control = 1,  // interface Node (control.capnp) follows
  session = 2,  // a new session, or, with the token of a known one, a session whose connection has broken
  stream = 3,  // memory of a session that comes from another host: a stream as on DIR/streams.sock (tools/vgpud/arrivals.h) follows, packed
               // (tools/relay/packed-stream.h)
  arrival = 4,  // the program of a session that comes from another host, with the token of its arrival
  lane = 5,     // an additional connection of a session, for the session's connection of this number
};

using SessionToken = std::array<uint8_t, 16>;  // random: whoever knows it has access to the session
std::string textOf(const SessionToken& token);
SessionToken newSessionToken();

struct Greeting {
  GreetingFor what;
  SessionToken token{};
  uint64_t received = 0;  // messages; for a lane, the number of the connection that it belongs to
  uint64_t attempt = 0;   // counts the session's attempts to connect, from 1: an attempt that arrives after a later one is dropped
};
struct GreetingAnswer {
  uint64_t received = 0;    // messages received
  uint32_t connection = 0;  // the number of this connection of the session: each connection that replaces a broken one has a new number
};

// Blocking calls, until `deadline`. They throw kj::Exception: DISCONNECTED if the peer is gone, OVERLOADED past the deadline, FAILED with
// the node's reason or if the peer is not a node.
using GreetingDeadline = std::chrono::steady_clock::time_point;
// Waits until the descriptor is ready for `events` of poll().
void awaitReady(int fd, short events, GreetingDeadline deadline);
GreetingAnswer greet(ByteStream& stream, const Greeting& greeting, const std::string& node, GreetingDeadline deadline);
// The node's side. Throws also if the peer speaks another version, after telling it so.
Greeting receiveGreeting(ByteStream& stream, GreetingDeadline deadline);
void acceptGreeting(ByteStream& stream, const GreetingAnswer& answer, GreetingDeadline deadline);
void refuseGreeting(ByteStream& stream, const std::string& reason, GreetingDeadline deadline);

}  // namespace vgpu
