// A link: messages in order between two processes that share no memory, over a byte stream that may break and be replaced.
//
// Each direction counts its messages. A sender keeps a message until the other side has acknowledged it; when a new stream replaces a
// broken one, both sides say how many messages they have received, and each sends again what the other lacks. So no message is lost and
// none is received twice, whatever bytes the broken stream lost.
//
//   a message:  bytes of the payload (4) · type (2) · 0 (2) · bytes beside it (4) · 0 (4) · messages received so far (8) ·
//   payload
//
// A slab's content can be sent beside its message, over additional connections, directly from one segment into the other
// (tools/relay/lane.h). The message is not taken before all bytes beside it have arrived, so the order is as if they were in it. The slab
// itself keeps the bytes until the message is acknowledged; over a new stream they are all sent again.
//
// Numbers are little endian. The link does no I/O: its owner takes bytes to be written from unsent() and reads bytes into space(). Used by
// one thread. The peer is not trusted: a message of impossible size or with an impossible count throws kj::Exception, after which the link
// is unusable.
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

constexpr uint64_t mostLinkPayload = 1 * MiB + 64;  // a slab and the structure that names it

struct LinkMessage {
  uint16_t type;
  std::span<const std::byte> payload;  // valid until the next call of space() or next()
};

// Bytes of a slab, from its beginning, that are sent beside a message. The messages of a direction are numbered from 1.
struct Beside {
  uint64_t message;
  uint32_t slab, bytes;
};

class Link {
 public:
  static constexpr uint16_t acknowledgement = 0;  // the type of messages that only acknowledge

  Link();

  // Begins a message of at most `most` bytes of payload and returns the buffer for it; finish() sends its first `bytes`. No other message
  // may be sent in between.
  std::span<std::byte> begin(uint16_t type, size_t most);
  void finish(size_t bytes);
  // Sends a complete message.
  void send(uint16_t type, std::span<const std::byte> payload);

  // Between begin() and finish(): sends these bytes of a slab, which must not change until the message is acknowledged, beside it.
  void putBeside(uint32_t slab, uint32_t bytes);
  // Whether so many bytes should be sent beside a message. The code that serves nextBeside() sets whether it has a connection for them.
  bool takesBeside(size_t bytes) const { return hasWayBeside && bytes >= leastBeside; }
  void setWayBeside(bool exists) { hasWayBeside = exists; }
  // The next bytes to send beside a message; each is returned once per stream.
  std::optional<Beside> nextBeside();
  bool hasMoreBeside() const { return besideGiven < beside.size(); }
  // So many bytes beside that message have arrived. Throws kj::Exception if that is impossible.
  void arrivedBeside(uint64_t message, uint32_t bytes);
  // Whether the next message has arrived and waits for bytes beside it.
  bool isWaitingBeside() const { return waitsBeside; }
  // Bytes of messages large enough to be sent beside, in both directions, since the link began.
  uint64_t bulkBytes() const { return bulk; }

  // Whether so much is unacknowledged that nothing should be added.
  bool isFull() const { return written - firstKept >= mostKept || beside.size() >= mostBeside; }
  // Whether the peer has acknowledged all messages that are not acknowledgements themselves.
  bool isAcknowledged() const { return forgotten >= needed; }
  // Whether the peer lacks an acknowledgement of messages that we have received.
  bool owesAcknowledgement() const { return acknowledged != receivedCount; }
  // Sends an acknowledgement if many messages were received since the last, or if `now`.
  void acknowledge(bool now);

  // The next bytes to write, as many as are contiguous; empty if all have been written.
  std::span<const std::byte> unsent() const;
  void sent(size_t bytes) { sentTo += bytes; }

  // A buffer to read into; received() says how many bytes were read. Then call next() until it returns nothing. Empty only while a message
  // waits for bytes beside it.
  std::span<std::byte> space();
  void received(size_t bytes) { filled += bytes; }
  std::optional<LinkMessage> next();

  // The number of messages that next() has returned since the link began.
  uint64_t receivedMessages() const { return receivedCount; }
  // A new stream begins: discards a partly received message, and sends again the messages that the peer lacks; the peer has received
  // `receivedByPeer`. Throws kj::Exception if that number is impossible.
  void restart(uint64_t receivedByPeer);

 private:
  static constexpr size_t mostKept = 64 * MiB;
  static constexpr size_t leastBeside = 64 * KiB;
  // Messages. A program has at most one message with bytes on its way for each slab, or waits for the data that it requested.
  static constexpr size_t mostBeside = 2 * slabCount;
  static constexpr size_t mostArriving = mostBeside + slabCount;  // a frame may name more than one slab
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    size_t size, used;
    uint64_t at;  // position of its first byte in the stream
  };
  void forget(uint64_t receivedByPeer);

  std::deque<Chunk> chunks;                         // bytes from firstKept on, and some before
  std::deque<uint64_t> ends;                        // the stream position of the end of each kept message
  uint64_t forgotten = 0;                           // messages before the first kept one
  uint64_t firstKept = 0, sentTo = 0, written = 0;  // positions in the stream
  uint64_t begun = 0;                               // size of the payload buffer of the message that was begun
  uint16_t begunType = acknowledgement;
  uint64_t needed = 0;  // messages up to the last one that is not an acknowledgement
  std::deque<Beside> beside;  // for the kept messages
  size_t besideGiven = 0;     // how many of these nextBeside() has returned on this stream
  bool hasWayBeside = false;
  uint64_t bulk = 0;

  std::unique_ptr<std::byte[]> incoming;
  size_t parsed = 0, filled = 0;
  uint64_t receivedCount = 0;
  uint64_t acknowledged = 0;  // the number in our last acknowledgement
  size_t unacknowledgedBytes = 0;
  std::map<uint64_t, uint32_t> arriving;  // message -> bytes beside it that have arrived
  bool waitsBeside = false;
};

}  // namespace vgpu
