// The bytes of a connection: as they are (PlainStream), or encrypted (tools/relay/tls-stream.h). Nothing here blocks. One thread.
#pragma once

#include <kj/io.h>

#include <cstddef>
#include <span>
#include <string>

namespace vgpu {

class ByteStream {
 public:
  virtual ~ByteStream() noexcept(false) = default;

  // Both return how many bytes were moved. If these are fewer than there was room for, or than were given, no more can be moved
  // until poll() says so, or the stream has ended.
  virtual size_t read(std::span<std::byte> room) = 0;
  // What was not taken must be given again, as it was.
  virtual size_t write(std::span<const std::byte> bytes) = 0;

  virtual int fd() const = 0;
  // What poll() must wait for before a read, or a write, can move something.
  virtual short eventsOf(bool reading, bool writing) const = 0;

  bool hasEnded() const { return !end.empty(); }
  const std::string& whyEnded() const { return end; }

 protected:
  std::string end;  // why; empty while it goes on
};

class PlainStream final : public ByteStream {
 public:
  // `socket`: connected. It becomes non-blocking.
  explicit PlainStream(kj::AutoCloseFd socket);
  size_t read(std::span<std::byte> room) override;
  size_t write(std::span<const std::byte> bytes) override;
  int fd() const override { return socket; }
  short eventsOf(bool reading, bool writing) const override;

 private:
  kj::AutoCloseFd socket;
};

}  // namespace vgpu
