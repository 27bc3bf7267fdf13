// A link: messages in order between two processes that share no memory, over a byte stream that may break and be made again.
//
// Each direction counts its messages. A sender keeps what it has sent until the other side has said that it has it; when a new
// stream takes the place of a broken one, both sides say how many messages they have received, and each sends again what the
// other lacks. So no message is lost, and none is received twice, whatever became of the bytes on the way.
//
//   a message:  bytes of the payload (4) · type (2) · 0 (2) · bytes beside it (4) · 0 (4) · messages received so far (8) ·
//   payload
//
// What a slab holds can go beside the message that it belongs to, over further connections, straight from one segment into the
// other (tools/relay/lane.h): the message is not taken before all bytes beside it have arrived, so the order is as if they were
// in it. The slab itself keeps them until the message is acknowledged; over a new stream they all go again.
//
// Numbers are little endian. The link does no I/O: its owner takes bytes to be written from unsent() and puts bytes that it has
// read into space(). Used by one thread. The peer is not trusted: a message of impossible size or with an impossible count throws
// kj::Exception, after which the link must be given up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "vgpu/base/sizes.h"
#include "vgpu/wire/segment.h"

namespace vgpu {

constexpr uint64_t mostLinkPayload = 1 * MiB + 64;  // a slab and what names it

struct LinkMessage {
  uint16_t type;
  std::span<const std::byte> payload;  // valid until the next call of space() or next()
};

// Bytes of a slab, from its beginning, that go beside a message. Messages of a direction are counted from 1.
struct Beside {
  uint64_t message;
  uint32_t slab, bytes;
};

class Link {
 public:
  static constexpr uint16_t acknowledgement = 0;  // the type of messages that only say what was received

  Link();

  // Begins a message of at most `most` bytes of payload and returns room for it; finish() sends its first `bytes`. Nothing else
  // is sent in between.
  std::span<std::byte> begin(uint16_t type, size_t most);
  void finish(size_t bytes);
  // A message that is there already.
  void send(uint16_t type, std::span<const std::byte> payload);

  // Between begin() and finish(): these bytes of a slab, which must not change until the message is acknowledged, go beside it.
  void putBeside(uint32_t slab, uint32_t bytes);
  // Whether so many bytes should go beside a message: whoever serves nextBeside() says whether there is a way for them.
  bool takesBeside(size_t bytes) const { return hasWayBeside && bytes >= leastBeside; }
  void setWayBeside(bool exists) { hasWayBeside = exists; }
  // What is to go beside messages next, each once a stream.
  std::optional<Beside> nextBeside();
  bool hasMoreBeside() const { return besideGiven < beside.size(); }
  // So many bytes beside that message have come. Throws kj::Exception if they cannot be.
  void arrivedBeside(uint64_t message, uint32_t bytes);
  // Whether the next message is here and waits for bytes beside it.
  bool isWaitingBeside() const { return waitsBeside; }
  // Bytes of messages so large that they could go beside, both ways, since the link began.
  uint64_t bulkBytes() const { return bulk; }

  // Whether so much waits to be acknowledged that nothing should be added.
  bool isFull() const { return written - firstKept >= mostKept || beside.size() >= mostBeside; }
  // Whether the peer has all messages, but for such that say what was received.
  bool isAcknowledged() const { return forgotten >= needed; }
  // Whether the peer does not know that we have all of its messages.
  bool owesAcknowledgement() const { return acknowledged != receivedCount; }
  // Says what was received, if that is much or `now`.
  void acknowledge(bool now);

  // Bytes to be written next, as many as lie in a row; empty if all have been written.
  std::span<const std::byte> unsent() const;
  void sent(size_t bytes) { sentTo += bytes; }

  // Room for bytes that are read; received() says how many came. Then next() until it has no more. Empty only while a message
  // waits for bytes beside it.
  std::span<std::byte> space();
  void received(size_t bytes) { filled += bytes; }
  std::optional<LinkMessage> next();

  // Messages that next() has returned, since the link began.
  uint64_t receivedMessages() const { return receivedCount; }
  // A new stream begins: forgets the half of a message that came, and sends again what the peer, which has received that many,
  // lacks. Throws kj::Exception if that number is impossible.
  void restart(uint64_t receivedByPeer);

 private:
  static constexpr size_t mostKept = 64 * MiB;
  static constexpr size_t leastBeside = 64 * KiB;
  static constexpr size_t mostBeside =
      2 * slabCount;  // messages; a program uses a slab for one thing at a time, or gets what it asks for
  static constexpr size_t mostArriving = mostBeside + slabCount;  // a frame may name more slabs than one
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    size_t size, used;
    uint64_t at;  // of its first byte in the stream
  };
  void forget(uint64_t receivedByPeer);

  std::deque<Chunk> chunks;                         // bytes from firstKept on, some before
  std::deque<uint64_t> ends;                        // where each message that is kept ends in the stream
  uint64_t forgotten = 0;                           // messages before the first that is kept
  uint64_t firstKept = 0, sentTo = 0, written = 0;  // places in the stream
  uint64_t begun = 0;                               // payload room of the message being made
  uint16_t begunType = acknowledgement;
  uint64_t needed = 0;  // messages up to the last that is no acknowledgement
  std::deque<Beside> beside;  // of messages that are kept
  size_t besideGiven = 0;     // how many of these nextBeside() has returned on this stream
  bool hasWayBeside = false;
  uint64_t bulk = 0;

  std::unique_ptr<std::byte[]> incoming;
  size_t parsed = 0, filled = 0;
  uint64_t receivedCount = 0;
  uint64_t acknowledged = 0;  // what we last said of that
  size_t unacknowledgedBytes = 0;
  std::map<uint64_t, uint32_t> arriving;  // message -> bytes beside it that have come
  bool waitsBeside = false;
};

}  // namespace vgpu
