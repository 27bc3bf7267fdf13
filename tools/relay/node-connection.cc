#include "tools/relay/node-connection.h"

#include "tools/common/reason.h"
#include "tools/keys/identity.h"
#include "tools/relay/tls-stream.h"
#include "vgpu/base/fail.h"

namespace vgpu::relay {
namespace {

constexpr std::chrono::seconds greetingLimit{10};

// A failure counts as temporary, because keys may be being replaced, and a relay with a session tries again.
keys::Identity readOwnIdentity() {
  keys::Identity own;
  auto caught = kj::runCatchingExceptions([&] { own = keys::readIdentity(keys::ownIdentityFile()); });
  KJ_IF_MAYBE (exception, caught) {
    kj::throwFatalException(
        kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__, kj::str(exception->getDescription())));
  }
  return own;
}

}  // namespace

ReachedNode reachNode(const Endpoint& node, const Greeting& greeting) {
  const bool isEncrypted = node.transport == Transport::tls;
  keys::Identity own;
  if (isEncrypted) own = readOwnIdentity();
  kj::AutoCloseFd connection = connectTo(node);
  const auto deadline = std::chrono::steady_clock::now() + greetingLimit;
  ReachedNode reached;
  auto caught = kj::runCatchingExceptions([&] {
    if (isEncrypted)
      reached.stream = connectTls(kj::mv(connection), std::move(own), node, deadline);
    else
      reached.stream = std::make_unique<PlainStream>(kj::mv(connection));
    reached.answer = greet(*reached.stream, greeting, node.text(), deadline);
  });
  KJ_IF_MAYBE (exception, caught) {
    const auto type = exception->getType();
    if (type == kj::Exception::Type::FAILED) kj::throwFatalException(kj::mv(*exception));  // the message names the node
    const bool mayNeedTls = type == kj::Exception::Type::DISCONNECTED && !isEncrypted;
    kj::throwFatalException(kj::Exception(type, __FILE__, __LINE__,
                                          kj::str(node.text(), " does not serve us: ", reasonOf(*exception),
                                                  mayNeedTls ? ". It may take tls: only, or may not be a vgpud" : "")));
  }
  return reached;
}

std::unique_ptr<ByteStream> admitPeer(kj::AutoCloseFd connection, const Endpoint& listener, GreetingDeadline deadline) {
  if (listener.transport == Transport::tls)
    return acceptTls(kj::mv(connection), keys::readIdentity(keys::ownIdentityFile()), deadline);
  std::string problem;
  if (!mayUseNode(connection, problem)) fail(problem);
  return std::make_unique<PlainStream>(kj::mv(connection));
}

}  // namespace vgpu::relay
