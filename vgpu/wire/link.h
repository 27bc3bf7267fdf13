// A link: messages in order between two processes that share no memory, over a byte stream that may break and be made again.
//
// Each direction counts its messages. A sender keeps what it has sent until the other side has said that it has it; when a new
// stream takes the place of a broken one, both sides say how many messages they have received, and each sends again what the
// other lacks. So no message is lost, and none is received twice, whatever became of the bytes on the way.
//
//   a message:  bytes of the payload (4) · type (2) · 0 (2) · messages received so far (8) · payload
//
// Numbers are little endian. The link does no I/O: its owner takes bytes to be written from unsent() and puts bytes that it has
// read into space(). Used by one thread. The peer is not trusted: a message of impossible size or with an impossible count throws
// kj::Exception, after which the link must be given up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "vgpu/base/sizes.h"

namespace vgpu {

constexpr uint64_t mostLinkPayload = 1 * MiB + 64;  // a slab and what names it

struct LinkMessage {
  uint16_t type;
  std::span<const std::byte> payload;  // valid until the next call of space() or next()
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

  // Whether so much waits to be acknowledged that nothing should be added.
  bool isFull() const { return written - firstKept >= mostKept; }
  // Whether the peer has all messages, but for such that say what was received.
  bool isAcknowledged() const { return forgotten >= needed; }
  // Whether the peer does not know that we have all of its messages.
  bool owesAcknowledgement() const { return acknowledged != receivedCount; }
  // Says what was received, if that is much or `now`.
  void acknowledge(bool now);

  // Bytes to be written next, as many as lie in a row; empty if all have been written.
  std::span<const std::byte> unsent() const;
  void sent(size_t bytes) { sentTo += bytes; }

  // Room for bytes that are read; received() says how many came. Then next() until it has no more.
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

  std::unique_ptr<std::byte[]> incoming;
  size_t parsed = 0, filled = 0;
  uint64_t receivedCount = 0;
  uint64_t acknowledged = 0;  // what we last said of that
  size_t unacknowledgedBytes = 0;
};

}  // namespace vgpu
