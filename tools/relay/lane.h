// An additional connection of a session, which transfers slabs' bytes directly from one segment into the other, beside the messages of the
// link that they belong to (vgpu/wire/link.h).
//
//   on the connection:  message (8) · slab (4) · offset in it (4) · bytes (4) · bytes that follow (4) · those bytes
//
// Numbers are little endian. If fewer bytes follow than the piece has, they are an LZ4 block (lane-packer.h).
//
// The session's relay tells a lane what to send, as a Piece, and is told what has been sent and what has arrived, over a socket pair of
// type SOCK_SEQPACKET (lanes.h has its other end). A lane is one thread: on the program's side a thread of the relay; on the worker's side
// the process that vgpud has started for the connection, because an encrypted connection cannot be passed to another process. It ends with
// its connection, or when the relay shuts the socket pair down, and leaves no state.
//
// The peer is not trusted: a piece that does not fit its slab ends the lane. Nor is the program trusted, which can change its slabs at any
// time.
#pragma once

#include <kj/function.h>
#include <kj/io.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tools/relay/lane-packer.h"
#include "vgpu/base/memory-file.h"
#include "vgpu/control/byte-stream.h"

namespace vgpu::relay {

struct Piece {
  uint64_t message;
  uint32_t slab, offset, bytes;
  uint32_t packed;  // bytes that follow; at most `bytes`
};
static_assert(sizeof(Piece) == 24);

// What a lane tells the relay; after `ended` the reason follows as text, instead of a piece.
enum class LaneReport : uint64_t { ready = 1, sent, arrived, ended };
struct LaneSaid {
  LaneReport what;
  Piece piece;
};
constexpr size_t mostLaneReason = 1024;

class Lane {
 public:
  // `relay`: this lane's end of the socket pair. `segment`: the session's.
  Lane(kj::AutoCloseFd relay, const MemoryFile& segment);

  // Runs over the connection that `connect` returns, until the connection ends or the relay ends the lane. Exceptions of `connect` are
  // reported to the relay.
  void run(kj::FunctionParam<std::unique_ptr<ByteStream>()> connect);

 private:
  void carry(ByteStream& connection);
  bool takePiece();
  bool send(ByteStream& connection);
  bool receive(ByteStream& connection);
  void check() const;
  void await(ByteStream& connection);
  void say(LaneReport what, const Piece& piece);

  kj::AutoCloseFd relay;
  const Mapping segment;
  bool isOver = false;  // the relay has ended this lane
  LanePacker packer;

  Piece sending{};
  std::span<const std::byte> unsentHead, unsentBytes;
  LanePacker::Clock::time_point sendingSince;

  Piece arriving{};
  size_t arrivedHead = 0, arrivedBytes = 0;
  std::span<std::byte> room;  // where the bytes that follow are read to
};

}  // namespace vgpu::relay
