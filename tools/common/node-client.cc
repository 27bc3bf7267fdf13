#include "tools/common/node-client.h"

#include <fmt/format.h>

#include <string_view>

#include "tools/common/reason.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu {
namespace {

constexpr auto answerLimit = 10 * kj::SECONDS;

}  // namespace

kj::AutoCloseFd NodeClient::reach(const NodeAddress& address) {
  if (address.remote) {
    relay = std::make_unique<NodeRelay>(*address.remote);
    return relay->take();
  }
  kj::AutoCloseFd fd;
  auto caught = kj::runCatchingExceptions([&] { fd = connectUnix(address.controlSocket()); });
  KJ_IF_MAYBE (exception, caught) {
    kj::throwFatalException(kj::Exception(
        exception->getType(), __FILE__, __LINE__,
        kj::str("no vgpud answers: ", reasonOf(*exception), ". Start one: vgpud --run-dir ", address.directory)));
  }
  if (!isTrusted(peerOf(fd))) fail("the vgpud on " + address.controlSocket() + " belongs to another user");
  return fd;
}

NodeClient::NodeClient(const NodeAddress& address) : io(kj::setupAsyncIo()) {
  stream = io.lowLevelProvider->wrapSocketFd(reach(address));
  rpc = kj::heap<capnp::TwoPartyClient>(*stream);
  client = rpc->bootstrap().castAs<control::Node>();
  auto request = client.helloRequest();
  request.setVersion(control::VERSION);
  auto answered = request.send().then([this](capnp::Response<control::Node::HelloResults>&& answer) {
    hello.emplace(kj::mv(answer));
    if (hello->getVersion() == control::VERSION) return;
    fail(fmt::format("the vgpud speaks control version {}, this tool version {}: use the same vgpu for both", hello->getVersion(),
                     control::VERSION));
  });
  auto late =
      io.provider->getTimer().afterDelay(answerLimit).then([&] { fail("the vgpud on " + address.name() + " does not answer"); });
  answered.exclusiveJoin(kj::mv(late))
      .catch_([&](kj::Exception&& exception) {
        if (exception.getType() != kj::Exception::Type::DISCONNECTED) kj::throwFatalException(kj::mv(exception));
        fail(address.name() + " closed the connection: it is not a vgpud, or is shutting down");
      })
      .wait(io.waitScope);
}

bool NodeClient::runsPtx() const {
  return devices().size() != 0 && std::string_view(devices()[0].getName().cStr()).starts_with("vgpu emulated device");
}

}  // namespace vgpu
