// A stream of memory between hosts (docs/migration.md) that compresses pieces if that is worthwhile: the bytes written at one end are read
// at the other.
//
//   on the connection:  bytes (4) · bytes that follow (4) · those bytes
//
// Numbers are little endian. If fewer bytes follow than the piece has, they are an LZ4 block (lane-packer.h).
//
// The peer is not trusted: read() throws kj::Exception at a piece of an impossible size, and at an invalid block. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tools/relay/lane-packer.h"
#include "vgpu/control/byte-stream.h"

namespace vgpu::relay {

class PackedStream final : public ByteStream {
 public:
  explicit PackedStream(std::unique_ptr<ByteStream> connection) : connection(std::move(connection)) {}

  size_t read(std::span<std::byte> room) override;
  // A piece counts as taken when the connection has taken all of it.
  size_t write(std::span<const std::byte> bytes) override;
  int fd() const override { return connection->fd(); }
  short eventsOf(bool reading, bool writing) const override { return connection->eventsOf(reading, writing); }

 private:
  struct Head {
    uint32_t bytes, packed;
  };
  void begin(std::span<const std::byte> piece);
  bool put(std::span<const std::byte> all, size_t from);
  bool takeHead();
  size_t takePlain(std::span<std::byte> room);
  bool takePacked();

  const std::unique_ptr<ByteStream> connection;
  LanePacker packer;

  Head sending{};                     // bytes 0: nothing is being sent
  std::span<const std::byte> packed;  // what follows the head, if that is not the piece itself
  size_t sent = 0;                    // bytes of the head and what follows
  LanePacker::Clock::time_point sendingSince;

  Head arriving{};
  size_t arrivedHead = 0, arrived = 0;  // bytes of the head; of what follows
  std::vector<std::byte> unpacked;      // allocated when needed
  std::span<const std::byte> unread;    // the unread part of `unpacked`
};

}  // namespace vgpu::relay
