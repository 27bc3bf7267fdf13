// A further connection of a session, over which bytes of slabs go straight from one segment into the other, beside the messages
// of the link that they belong to (vgpu/wire/link.h).
//
//   on the connection:  message (8) · slab (4) · place in it (4) · bytes (4) · bytes that follow (4) · these
//
// Numbers are little endian. If fewer bytes follow than the piece has, they are an LZ4 block (lane-packer.h).
//
// The session's relay says what is to be sent, as a Piece, and hears what has been sent and what has arrived, over a socket pair
// of type SOCK_SEQPACKET (lanes.h has its other end). A lane is one thread: beside the program one of the relay's own; beside the
// worker, of the process that vgpud has started for the connection, because encryption cannot be given away. It ends with its
// connection, or when the relay shuts the socket pair down, and nothing of it survives.
//
// The peer is not trusted: a piece that no slab has room for ends the lane. Nor is the program, which can change its slabs at any
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

// What a lane says to the relay; `ended` is followed by why, as text, in the place of a piece.
enum class LaneReport : uint64_t { ready = 1, sent, arrived, ended };
struct LaneSaid {
  LaneReport what;
  Piece piece;
};
constexpr size_t mostLaneReason = 1024;

class Lane {
 public:
  // `relay`: its end of the socket pair. `segment`: the session's.
  Lane(kj::AutoCloseFd relay, const MemoryFile& segment);

  // Over the connection that `connect` returns, until it ends or the relay ends the lane. What it throws the relay is told.
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
  bool isOver = false;  // the relay wants no more of it
  LanePacker packer;

  Piece sending{};
  std::span<const std::byte> unsentHead, unsentBytes;
  LanePacker::Clock::time_point sendingSince;

  Piece arriving{};
  size_t arrivedHead = 0, arrivedBytes = 0;
  std::span<std::byte> room;  // of the bytes that follow
};

}  // namespace vgpu::relay
