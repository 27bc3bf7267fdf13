#include "tools/vgpud/acceptor.h"

#include <doctest/doctest.h>

#include "../scratch-directory.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::daemon {

TEST_CASE("a connection that cannot be served does not block the next one") {
  test::ScratchDirectory folder("/tmp");
  const std::string path = folder.path + "/s";
  kj::AsyncIoContext io = kj::setupAsyncIo();
  auto served = kj::newPromiseAndFulfiller<void>();
  int connections = 0;
  auto accepting = acceptAll(io, path, [&](kj::AutoCloseFd) {
    if (connections++ == 0) fail("no room for it");
    served.fulfiller->fulfill();
  });
  kj::AutoCloseFd first = connectUnix(path), second = connectUnix(path);
  served.promise.exclusiveJoin(kj::mv(accepting)).wait(io.waitScope);
  CHECK(connections == 2);
}

}  // namespace vgpu::daemon
