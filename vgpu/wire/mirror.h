// The messages between the two sides of a mirrored session: docs/remote.md. The program and the worker share no memory. Each has a segment
// (segment.h) that it shares with a relay, and the relays keep the two segments equal, as far as either side reads them, by messages of a
// link (link.h).
//
//   program's host                                        GPU's host
//   program ─ segment ─ ProgramMirror ══ link ══ WorkerMirror ─ segment ─ worker
//
// Numbers are little endian, in structures without gaps; the bytes that a message carries follow its structure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "vgpu/wire/link.h"
#include "vgpu/wire/segment.h"

namespace vgpu {

enum class MirrorMessage : uint16_t {
  // Sent to the worker's side.
  frames = 1,        // FramesAt, and complete frames of that ring, one after the other
  slabLent = 2,      // SlabBytes with the generation, and the bytes of the slab that a later frame reads
  answered = 3,      // WordValue: the program has run a host function
  fold = 4,          // Flag: SegmentHeader::fold
  faultCleared = 5,  // DeviceCode
  ringPlace = 6,     // RingPlace: sent first if the segment is new but the session is not
  wordPlace = 7,     // WordPlace: likewise, for a completion word
  // Sent to the program's side.
  slot = 16,        // SlotDone, and bytes of the reply
  word = 17,        // WordValue: CompletionWord::done
  slabFree = 18,    // SlabBytes: the GPU has finished reading the slab
  slabFilled = 19,  // SlabBytes, and the bytes that a frame has written into the slab; the message for its slot follows
  tail = 20,        // FramesAt: everything before this position is consumed
  flags = 21,       // Flags
  fault = 22,       // DeviceCode
  deferred = 23,    // DeviceCode
  handover = 24,    // WordValue: the worker has claimed the session
  // Higher numbers are the relays' own messages.
  firstOfRelay = 64,
};

namespace mirror {

struct FramesAt {
  uint64_t position;
  uint32_t device, reserved = 0;
};
struct SlabBytes {
  uint32_t slab, generation;
};
struct WordValue {
  uint32_t word, reserved = 0;
  uint64_t value;
};
struct RingPlace {
  uint64_t position;  // of the next frame
  uint32_t device;
  int32_t fault;
};
struct WordPlace {
  uint32_t word, reserved = 0;
  uint64_t done, answered;
};
struct Flag {
  uint32_t value;
};
struct Flags {
  uint32_t storesImages, outputWaits;
};
struct DeviceCode {
  uint32_t device;
  int32_t code;
};
struct SlotDone {
  uint64_t done;
  int32_t result;
  uint32_t replyWords;
  uint16_t slot;
  uint16_t isCall;  // 1: the worker has replied, and result and reply belong to the frame; else the result is only an error
  uint32_t reserved = 0;
};

// The beginning of a frame (FrameHeader) as sent in a message.
struct FrameStart {
  uint64_t sequence;
  uint32_t bytes;
  uint16_t method, slot;
  uint8_t device, reserved[7];
};
static_assert(sizeof(FrameStart) == sizeof(FrameHeader));

template <typename T>
std::span<const std::byte> bytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// Takes a structure from the front of `bytes`. Throws kj::Exception if `bytes` is too short.
template <typename T>
T take(std::span<const std::byte>& bytes);

// Sends a structure, followed by bytes.
template <typename T>
void send(Link& link, MirrorMessage type, const T& head, std::span<const std::byte> bytes = {}) {
  auto room = link.begin(static_cast<uint16_t>(type), sizeof head + bytes.size());
  std::memcpy(room.data(), &head, sizeof head);
  if (!bytes.empty()) std::memcpy(room.data() + sizeof head, bytes.data(), bytes.size());
  link.finish(room.size());
}

// Sends a slab's content: behind the structure, or beside the message.
inline void sendSlab(Link& link, MirrorMessage type, const SlabBytes& head, std::span<const std::byte> bytes) {
  if (!link.takesBeside(bytes.size())) return send(link, type, head, bytes);
  auto room = link.begin(static_cast<uint16_t>(type), sizeof head);
  std::memcpy(room.data(), &head, sizeof head);
  link.putBeside(head.slab, static_cast<uint32_t>(bytes.size()));
  link.finish(room.size());
}

[[noreturn]] void refuse(const char* what, uint64_t value);

template <typename T>
T take(std::span<const std::byte>& bytes) {
  if (bytes.size() < sizeof(T)) refuse("a message is too short", bytes.size());
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return value;
}

// Throws kj::Exception if `index` is not below `count`.
inline void require(uint64_t index, uint64_t count, const char* what) {
  if (index >= count) refuse(what, index);
}

}  // namespace mirror

}  // namespace vgpu
