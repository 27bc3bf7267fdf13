// The byte stream of one client of interface Node, which ends if the client exceeds its share of the daemon's resources.
//
// Cap'n Proto bounds the calls in progress (RpcSystem::setFlowLimit), but neither the replies that the client does not read nor those that
// it has read and not released; and as long as a client always has data to read, the event loop serves no other connection. This stream
// checks all three before it reads more from the client.
#pragma once

#include <kj/async-io.h>
#include <kj/function.h>

#include <string>

namespace vgpu::daemon {

class ClientStream final : public kj::AsyncIoStream {
 public:
  // `excess` is called before each read and returns the limit that the client exceeds, or an empty text. If it is not empty, the stream
  // reads no more and rejects with that text.
  ClientStream(kj::Own<kj::AsyncIoStream> inner, kj::Timer& timer, kj::Function<std::string()> excess)
      : inner(kj::mv(inner)), timer(timer), excess(kj::mv(excess)) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t minBytes, size_t maxBytes) override;

  kj::Promise<void> write(const void* buffer, size_t size) override { return inner->write(buffer, size); }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return inner->write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner->whenWriteDisconnected(); }
  void shutdownWrite() override { inner->shutdownWrite(); }
  void abortRead() override { inner->abortRead(); }
  void getsockopt(int level, int option, void* value, kj::uint* length) override {
    inner->getsockopt(level, option, value, length);
  }

 private:
  kj::Own<kj::AsyncIoStream> inner;
  kj::Timer& timer;
  kj::Function<std::string()> excess;
  unsigned reads = 0;
};

}  // namespace vgpu::daemon
