// A connection under TLS 1.3, of which both sides have shown a certificate of the CA that the other knows, for one and the same
// user. What is checked, and how a refusal reads: peer-check.h.
//
// SIGPIPE must be ignored by the process: OpenSSL writes without regard to it.
//
// OpenSSL itself, not kj-tls: the relays' loops poll() descriptors and memory, and have no event loop of KJ's.
#pragma once

#include <memory>

#include "tools/keys/identity.h"
#include "vgpu/control/byte-stream.h"
#include "vgpu/control/endpoint.h"
#include "vgpu/control/greeting.h"

namespace vgpu::relay {

// Both shake hands, blocking until `deadline`, and throw kj::Exception of type DISCONNECTED if the other side cannot be used, or
// does not accept us. At a node that happens later: its refusal is why the stream ends, before its first byte.
std::unique_ptr<ByteStream> connectTls(kj::AutoCloseFd connection, keys::Identity own, const Endpoint& node,
                                       GreetingDeadline deadline);
std::unique_ptr<ByteStream> acceptTls(kj::AutoCloseFd connection, keys::Identity own, GreetingDeadline deadline);

}  // namespace vgpu::relay
