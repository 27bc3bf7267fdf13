// The bytes of a connection: unencrypted (PlainStream), encrypted (tools/relay/tls-stream.h), or through memory shared with a virtual
// machine (tools/relay/guest-stream.h). Nothing here blocks. One thread.
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

  // Both return the number of bytes moved. If that is less than the room or the bytes given, nothing more can be moved until poll() reports
  // it, or the stream has ended.
  virtual size_t read(std::span<std::byte> room) = 0;
  // The caller must pass the bytes that were not taken again, unchanged.
  virtual size_t write(std::span<const std::byte> bytes) = 0;

  virtual int fd() const = 0;  // -1: no descriptor to poll()
  // The poll() events after which a read, or a write, can make progress.
  virtual short eventsOf(bool reading, bool writing) const = 0;

  // The longest time in nanoseconds after which the stream must be checked again even if poll() reports nothing.
  virtual uint64_t mostSleep() const { return UINT64_MAX; }

  // Whether read() may still return bytes, and whether write() may still take some. A peer that reads no more may still have sent its
  // reason.
  bool bringsMore() const { return isReadable; }
  bool takesMore() const { return isWritable; }
  bool hasEnded() const { return !isReadable || !isWritable; }
  const std::string& whyEnded() const { return why; }  // the reason of whichever end was detected first; empty while the stream is open

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
