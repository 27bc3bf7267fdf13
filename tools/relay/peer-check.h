// Whether the certificate that the other side of a TLS connection shows may be used, and what is said if not: here, of its
// certificate; and of ours, if the other side refuses it with an alert.
#pragma once

#include <openssl/ssl.h>

#include <string>

#include "tools/keys/identity.h"

namespace vgpu::relay {

class PeerCheck {
 public:
  // `host`: the name by which a node was asked for; empty at the node. `own` must outlive it.
  PeerCheck(const keys::Identity& own, std::string host) : own(own), host(std::move(host)) {}

  // Makes the connection ask for the other side's certificate, and check it: signed by our CA, valid now, for our own user, and
  // of the host that was asked for. Must outlive the handshake.
  void watch(SSL* connection);
  // Why the handshake, or what was read or written after it, has failed, with `result` of that call.
  std::string problemOf(SSL* connection, int result) const;

 private:
  static int verify(int accepted, X509_STORE_CTX* context);
  // Why it cannot be used, if so; `error`: what OpenSSL found, and afterwards what it is to tell the other side.
  std::string judge(int& error, const X509& certificate) const;

  const keys::Identity& own;
  const std::string host;
  std::string problem;  // with its certificate
};

}  // namespace vgpu::relay
