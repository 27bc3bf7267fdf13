// The bytes of a connection: as they are (PlainStream), encrypted (tools/relay/tls-stream.h), or in memory that is shared with a
// virtual machine (tools/relay/guest-stream.h). Nothing here blocks. One thread.
#pragma once

#include <kj/io.h>

#include <cstddef>
#include <cstdint>
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

  virtual int fd() const = 0;  // -1: none, for which poll() does not wait
  // What poll() must wait for before a read, or a write, can move something.
  virtual short eventsOf(bool reading, bool writing) const = 0;

  // Nanoseconds after which it must be looked at, whatever poll() says.
  virtual uint64_t mostSleep() const { return UINT64_MAX; }

  // Whether read() may bring more, and write() take more: who takes nothing more may still have said why.
  bool bringsMore() const { return isReadable; }
  bool takesMore() const { return isWritable; }
  bool hasEnded() const { return !isReadable || !isWritable; }
  const std::string& whyEnded() const { return why; }  // of the end that was found first; empty while it goes on

 protected:
  void endReading(const std::string& reason) { end(isReadable, reason); }
  void endWriting(const std::string& reason) { end(isWritable, reason); }

 private:
  void end(bool& goesOn, const std::string& reason) {
    if (!hasEnded()) why = reason;
    goesOn = false;
  }

  bool isReadable = true, isWritable = true;
  std::string why;
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
