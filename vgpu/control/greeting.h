// The first bytes of every connection from elsewhere, of fixed size, so that a stranger on the port can make a node read no more.
//
//   to the node     "VGPULINK" · version (4) · what (4) · token (16) · messages received, or a connection's number (8) ·
//                   attempt (8) · 0 (16)
//   from the node   "VGPULINK" · version (4) · status (4) · messages received (8) · bytes of the reason (4) · connection (4) ·
//   reason
//
// A node of another version answers all the same, so that both sides can name the versions.
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
  session = 2,  // a new session, or with a token that is known there, one whose connection has broken
  stream = 3,  // memory of a session that comes from another host: a stream of DIR/streams.sock (tools/vgpud/arrivals.h) follows,
               // packed (tools/relay/packed-stream.h)
  arrival = 4,  // that session's program, with the token of its arrival
  lane = 5,     // a further connection of a session: of that one of its connections that has this number
};

using SessionToken = std::array<uint8_t, 16>;  // random: who knows it has the session
std::string textOf(const SessionToken& token);
SessionToken newSessionToken();

struct Greeting {
  GreetingFor what;
  SessionToken token{};
  uint64_t received = 0;  // messages; for a lane, the number of the connection that it is beside
  uint64_t attempt = 0;   // of this session to connect, from 1: one that arrives after a later one is dropped
};
struct GreetingAnswer {
  uint64_t received = 0;    // messages
  uint32_t connection = 0;  // which one of the session it is: each that takes a broken one's place has another number
};

// Blocking, until `deadline`. Throws kj::Exception: DISCONNECTED if the peer is gone, OVERLOADED past the deadline, FAILED with
// the node's reason, or saying that the peer is none.
using GreetingDeadline = std::chrono::steady_clock::time_point;
// Until the descriptor is ready for `events` of poll().
void awaitReady(int fd, short events, GreetingDeadline deadline);
GreetingAnswer greet(ByteStream& stream, const Greeting& greeting, const std::string& node, GreetingDeadline deadline);
// On the node's side. Throws also if the peer speaks another version, after it was told.
Greeting receiveGreeting(ByteStream& stream, GreetingDeadline deadline);
void acceptGreeting(ByteStream& stream, const GreetingAnswer& answer, GreetingDeadline deadline);
void refuseGreeting(ByteStream& stream, const std::string& reason, GreetingDeadline deadline);

}  // namespace vgpu
