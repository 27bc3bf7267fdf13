// Checks the certificate of the other side of a TLS connection, and explains refusals: ours of its certificate, and the other side's of
// ours, which arrives as an alert.
#pragma once

#include <openssl/ssl.h>

#include <string>

#include "tools/keys/identity.h"

namespace vgpu::relay {

class PeerCheck {
 public:
  // `host`: the name that was used for the node; empty on the node's side. `own` must outlive it.
  PeerCheck(const keys::Identity& own, std::string host) : own(own), host(std::move(host)) {}

  // Makes the connection request and check the other side's certificate: signed by our CA, valid now, for our own user, and for the
  // requested host. Must outlive the handshake.
  void watch(SSL* connection);
  // Why the handshake, or a later read or write, has failed; `result`: that call's result.
  std::string problemOf(SSL* connection, int result) const;

 private:
  static int verify(int accepted, X509_STORE_CTX* context);
  // Why the certificate cannot be used; empty if it can. `error`: what OpenSSL found on entry, and what it is to tell the other side on
  // return.
  std::string judge(int& error, const X509& certificate) const;

  const keys::Identity& own;
  const std::string host;
  std::string problem;  // with the other side's certificate
};

}  // namespace vgpu::relay
