// The byte stream on which a migration sends data ahead, from the source's worker to the target's (docs/migration.md): device memory,
// modules' images, and the recipes of objects.
//
//    0        4        8          16         24                  40
//    ┌────────┬────────┬──────────┬──────────┬───────────────────┬──────────────────────────┐
//    │ kind   │ device │ address  │ bytes    │ digest            │ the bytes of a chunk     │
//    └────────┴────────┴──────────┴──────────┴───────────────────┴──────────────────────────┘
//
// lease: memory of the arena for which this stream will send chunks. zeros: a chunk without bytes. flush: answered with the same message
// when everything before it is in place. There are several streams, and a chunk may be sent on any of them, so new data for the same memory
// is sent only after a flush of all streams.
// image: begins an image of `bytes`, whose number is `address`; piece: the next chunk of it. objects: the recipes of the objects to make
// now (objects-ahead.h), replacing those sent before. These are sent on one stream.
// refused: the target's last message, with the reason as text. Numbers are little endian.
#pragma once

#include <kj/io.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "vgpu/store/chunk-digest.h"

namespace vgpu::migrate {

enum class MessageKind : uint32_t { lease = 1, chunk = 2, zeros = 3, flush = 4, refused = 5, image = 6, piece = 7, objects = 8 };

struct ChunkMessage {
  MessageKind kind = MessageKind::flush;
  uint32_t device = 0;
  uint64_t address = 0, bytes = 0;
  Digest digest;  // of a chunk or a piece
};
static_assert(sizeof(ChunkMessage) == 40);

// One thread at a time. Blocking.
class ChunkStream {
 public:
  explicit ChunkStream(kj::AutoCloseFd socket) : socket(kj::mv(socket)) {}

  // Throws kj::Exception if the other side has ended the stream, with its reason if it has refused.
  void send(const ChunkMessage& message, std::span<const std::byte> bytes = {});
  // Throws kj::Exception if the stream ends before a complete message.
  ChunkMessage receive();
  void receive(std::span<std::byte> bytes);
  // Sends a flush and waits for its answer.
  void flush();
  // Sends the last message and shuts down both directions, so that a sender that polls for room learns that there will be none.
  void refuse(const std::string& why);
  // Receives nothing more; ends another thread's blocked call. Any thread.
  void endReceiving();
  // Nor sends anything more.
  void shutDown();

 private:
  void failAsRefused(const ChunkMessage& message);
  kj::AutoCloseFd socket;
};

}  // namespace vgpu::migrate
