// Messages between an application process and vgpud (ToNode, ToSession of control.capnp), with descriptors beside them, over a connected
// unix stream socket: Cap'n Proto's standard stream framing, one message after the other, read and written by blocking calls. Used on the
// program's side, which must not have an event loop.
//
// A channel owns its socket and is used by one thread at a time. The peer's messages are not trusted: size, framing and number of
// descriptors are bounded, and unexpected descriptors are closed.
#pragma once

#include <capnp/message.h>
#include <kj/array.h>
#include <kj/io.h>

#include <chrono>
#include <optional>
#include <vector>

namespace vgpu {

struct ControlMessage {
  kj::Own<capnp::MessageReader> reader;
  std::vector<kj::AutoCloseFd> descriptors;
};

class ControlChannel {
 public:
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;  // nothing: no limit

  static constexpr size_t mostBytes = size_t{256} << 10;  // of one message
  static constexpr size_t mostDescriptors = 8;            // beside one message

  // `wake`, if given, is a descriptor that interrupts a blocked call when it becomes readable. It must outlive the channel.
  explicit ControlChannel(kj::AutoCloseFd socket, int wake = -1);

  int fd() const { return socket; }
  void close() { socket = nullptr; }

  // Throws kj::Exception: DISCONNECTED if the peer is gone or `wake` is readable, OVERLOADED past the deadline.
  void send(capnp::MessageBuilder& message, kj::ArrayPtr<const int> descriptors = nullptr, Deadline deadline = {});

  // The next message with at most `descriptors` descriptors; nothing if the peer has closed the connection between two messages.
  // Throws like send(), and FAILED for an invalid message.
  std::optional<ControlMessage> receive(size_t descriptors = 0, Deadline deadline = {});

 private:
  void await(short events, const Deadline& deadline);
  bool fill(kj::ArrayPtr<kj::byte> bytes, std::vector<kj::AutoCloseFd>& descriptors, bool mayEnd,
            const Deadline& deadline);
  size_t receiveSome(kj::ArrayPtr<kj::byte> bytes, std::vector<kj::AutoCloseFd>& descriptors, const Deadline& deadline);

  kj::AutoCloseFd socket;
  int wake;
};

}  // namespace vgpu
