// The byte stream on which a migration sends ahead what takes long, from the source's worker to the target's (docs/migration.md):
// device memory, modules' images, and the recipes of objects.
//
//    0        4        8          16         24                  40
//    ┌────────┬────────┬──────────┬──────────┬───────────────────┬──────────────────────────┐
//    │ kind   │ device │ address  │ bytes    │ digest            │ the bytes of a chunk     │
//    └────────┴────────┴──────────┴──────────┴───────────────────┴──────────────────────────┘
//
// lease: memory of the arena that chunks of this stream will be for. zeros: a chunk without bytes. flush: answered with the same
// message when all before it is in place. There are several streams, and a chunk goes into any of them; so what is for the same
// memory is sent again only after a flush of all.
// image: an image of so many bytes, whose number is `address`; piece: the next chunk of it. objects: the recipes of what is to be made
// now (objects-ahead.h), in the place of those before. They come in one stream.
// refused: from the target, its last message, with the reason as text. Numbers are little endian.
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

  // Throws kj::Exception if the other side has ended the stream: with its reason, if it has refused.
  void send(const ChunkMessage& message, std::span<const std::byte> bytes = {});
  // Throws kj::Exception if the stream ends before a whole message.
  ChunkMessage receive();
  void receive(std::span<std::byte> bytes);
  // Sends one and waits for its answer.
  void flush();
  // The last message, which ends the stream both ways: who polls for room to send learns that there will be none.
  void refuse(const std::string& why);
  // Nothing more is received; ends the call of another thread. Any thread.
  void endReceiving();
  // Nor sent.
  void shutDown();

 private:
  void failAsRefused(const ChunkMessage& message);
  kj::AutoCloseFd socket;
};

}  // namespace vgpu::migrate
