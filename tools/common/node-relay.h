// The process through which a tool speaks with a node elsewhere: `vgpu-relay tool` connects, encrypts if the address says so, and
// passes bytes on. So that tools link no OpenSSL.
//
// It has one end of a socket pair; ours gets nodeReached first, or nodeNotReached and why, up to the end.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/common/spawn.h"
#include "vgpu/control/endpoint.h"

namespace vgpu {

constexpr char nodeReached = '+', nodeNotReached = '-';
// Where every vgpu-relay expects the connection that it is given.
constexpr int relayDescriptor = 3;

// To start it with these arguments.
SpawnRequest relayRequest(std::vector<std::string> arguments);

class NodeRelay {
 public:
  enum class For { calls, stream };  // interface Node; memory of a session that moves to that node
  // Waits until the node is reached. Throws kj::Exception, saying why it cannot be.
  explicit NodeRelay(const Endpoint& node, For what = For::calls);
  // Ends it, and reaps it.
  ~NodeRelay();
  NodeRelay(const NodeRelay&) = delete;
  NodeRelay& operator=(const NodeRelay&) = delete;

  // The connection with the node's vgpud. Once.
  kj::AutoCloseFd take() { return kj::mv(connection); }

 private:
  void end();

  kj::AutoCloseFd connection;
  pid_t process = 0;
};

}  // namespace vgpu
