// The relay beside a program: to the program it is the node. It makes the memory that a worker would make, and a state directory,
// and passes on what the program writes there and says, and what the other relay (node-side.h) brings.
//
// One process a session, one thread and one for the bells. Its memory lives as long as the program, over suspends.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tools/relay/bell-thread.h"
#include "tools/relay/relay-loop.h"
#include "vgpu/control/control.capnp.h"
#include "vgpu/control/endpoint.h"
#include "vgpu/control/greeting.h"
#include "vgpu/wire/program-mirror.h"

namespace vgpu::relay {

class ProgramSide final : public RelayLoop {
 public:
  // `program`: its connection, from which nothing has been read. `directory`: where state directories are made.
  ProgramSide(kj::AutoCloseFd program, const Endpoint& node, std::string directory);
  // Removes the state directory.
  ~ProgramSide() override;

  // Asks the node for a session. False if there is none; the program has been told why.
  bool open();

 private:
  void take(const LinkMessage& message) override;
  bool produce() override;
  void serveChannel(uint32_t channel) override;
  void serveWatched(int fd) override;
  std::unique_ptr<ByteStream> reconnect() override;
  void giveUp(const std::string& why) override;
  bool prepareToSleep() override;
  void awake() override;
  uint64_t mostSleep(Backoff& backoff) override;

  void takeOpened(std::span<const std::byte> bytes);
  void takeControl(uint32_t channel, std::span<const std::byte> bytes);
  void takeReattach(uint32_t channel, std::span<const std::byte> bytes);
  void passClosed(uint32_t channel);
  void passGateClosed();
  void sendObjects();
  void close(uint32_t channel);
  void end();
  void lose(const std::string& why);

  const Endpoint node;
  const std::string directory;
  const SessionToken token = newSessionToken();
  kj::AutoCloseFd program;  // a pidfd; none if its process cannot be seen
  std::string stateDirectory;
  MemoryFile segmentFile;
  std::optional<Segment> segment;
  std::unique_ptr<ProgramMirror> mirror;
  std::unique_ptr<BellThread> bells;
  // A reply that the program has given: it goes when all frames before it have gone.
  struct GateClosed {
    uint32_t channel;
    kj::Array<capnp::word> message;
  };
  std::optional<GateClosed> gateClosed;
};

}  // namespace vgpu::relay
