// The process through which a tool communicates with a node elsewhere: `vgpu-relay tool` connects, encrypts if the address requires it, and
// passes bytes on, so that tools need not link OpenSSL.
//
// It has one end of a socket pair; it first writes nodeReached, or nodeNotReached and the reason up to the end of the stream.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/common/spawn.h"
#include "vgpu/control/endpoint.h"

namespace vgpu {

constexpr char nodeReached = '+', nodeNotReached = '-';
// The descriptor on which every vgpu-relay expects its connection.
constexpr int relayDescriptor = 3;

// A request to start vgpu-relay with these arguments.
SpawnRequest relayRequest(std::vector<std::string> arguments);

class NodeRelay {
 public:
  enum class For { calls, stream };  // calls of interface Node; or memory of a session that moves to that node
  // Waits until the node is reached. Throws kj::Exception with the reason if it cannot be.
  explicit NodeRelay(const Endpoint& node, For what = For::calls);
  // Ends the process and reaps it.
  ~NodeRelay();
  NodeRelay(const NodeRelay&) = delete;
  NodeRelay& operator=(const NodeRelay&) = delete;

  // The connection to the node's vgpud. Call it once.
  kj::AutoCloseFd take() { return kj::mv(connection); }

 private:
  void end();

  kj::AutoCloseFd connection;
  pid_t process = 0;
};

}  // namespace vgpu
