// A connection under TLS 1.3 whose sides have both presented a certificate of the CA that the other side trusts, for the same user.
// peer-check.h describes the checks and the messages of a refusal.
//
// The process must ignore SIGPIPE, because OpenSSL's writes may raise it.
//
// Uses OpenSSL directly instead of kj-tls: the relays' loops poll() descriptors and memory, and have no KJ event loop.
#pragma once

#include <memory>

#include "tools/keys/identity.h"
#include "vgpu/control/byte-stream.h"
#include "vgpu/control/endpoint.h"
#include "vgpu/control/greeting.h"

namespace vgpu::relay {

// Both perform the handshake, blocking until `deadline`, and throw kj::Exception of type DISCONNECTED if the other side's certificate is
// rejected, or ours is. A node learns of the latter only later: the stream then ends with that reason before its first byte.
std::unique_ptr<ByteStream> connectTls(kj::AutoCloseFd connection, keys::Identity own, const Endpoint& node,
                                       GreetingDeadline deadline);
std::unique_ptr<ByteStream> acceptTls(kj::AutoCloseFd connection, keys::Identity own, GreetingDeadline deadline);

}  // namespace vgpu::relay
