// The process through which a tool speaks with a node elsewhere: `vgpu-relay tool` connects, encrypts if the address says so, and
// passes bytes on. So that tools link no OpenSSL.
//
// Its descriptor 3 is one end of a socket pair; ours gets nodeReached first, or nodeNotReached and why, up to the end.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include "vgpu/control/endpoint.h"

namespace vgpu {

constexpr char nodeReached = '+', nodeNotReached = '-';

class NodeRelay {
 public:
  // Throws kj::Exception, saying why the node cannot be reached.
  explicit NodeRelay(const Endpoint& node);
  // Ends it.
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
