// The messages of a session's relays besides those of the mirror (vgpu/wire/mirror.h): the control messages of the program and of vgpud,
// unchanged, and the object list, which vgpud's side reads.
//
// A program has one control connection with the daemon that serves it and, while it is suspended, possibly another one with a daemon that
// resumes it. Each is a channel with a number: 0 is the first, and each `reattach` begins the next.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/array.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>

#include "vgpu/control/channel.h"
#include "vgpu/wire/mirror.h"

namespace vgpu::relay {

// For sending or receiving one message of a control connection, or a greeting.
constexpr std::chrono::seconds messageLimit{10};

enum class RelayMessage : uint16_t {
  open = static_cast<uint16_t>(MirrorMessage::firstOfRelay),  // to the node: the program's `open`
  opened,        // to the program: the node's `opened`; this side makes the program's memory and folder
  control,       // OnChannel, and a message in either direction
  closed,        // OnChannel: the connection has ended
  reattach,      // OnChannel, and a daemon's first message: a new channel
  objects,       // ObjectBytes, and a piece of the object list, in order
  programEnded,  // to the node
};

struct OnChannel {
  uint32_t channel, reserved = 0;
};
struct ObjectBytes {
  uint64_t offset, total;
};

constexpr size_t objectPieceBytes = 512 * KiB;

// Converts a control message to bytes and back. `Kind`: control::ToNode or control::ToSession.
template <typename Kind>
kj::Array<capnp::word> flatten(typename Kind::Reader message) {
  capnp::MallocMessageBuilder builder;
  builder.setRoot(message);
  return capnp::messageToFlatArray(builder);
}

class ReceivedControl {
 public:
  // Throws kj::Exception if the bytes are not a valid message.
  explicit ReceivedControl(std::span<const std::byte> bytes)
      : words(kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word))), reader(copied(bytes)) {}

  template <typename Kind>
  typename Kind::Reader get() {
    return reader.getRoot<Kind>();
  }
  // Sends the message to the other end of a local connection.
  template <typename Kind>
  void pass(ControlChannel& channel, kj::ArrayPtr<const int> descriptors, ControlChannel::Deadline deadline) {
    capnp::MallocMessageBuilder builder;
    builder.setRoot(get<Kind>());
    channel.send(builder, descriptors, deadline);
  }

 private:
  kj::ArrayPtr<const capnp::word> copied(std::span<const std::byte> bytes) {
    std::memcpy(words.begin(), bytes.data(), words.asBytes().size());
    return words;
  }
  kj::Array<capnp::word> words;
  capnp::FlatArrayMessageReader reader;
};

inline std::span<const std::byte> bytesOf(kj::ArrayPtr<const capnp::word> words) {
  return std::as_bytes(std::span(words.begin(), words.size()));
}

template <typename Head>
void send(Link& link, RelayMessage type, const Head& head, std::span<const std::byte> bytes = {}) {
  mirror::send(link, static_cast<MirrorMessage>(type), head, bytes);
}

}  // namespace vgpu::relay
