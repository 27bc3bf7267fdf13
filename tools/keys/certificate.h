// Certificates of users and hosts: X.509, so any CA can issue them.
//
//   subject              UID=USER, CN=the first name
//   subject alternative  the names and addresses of the host that may use it to listen, and localhost with its addresses, so that the
//                        loopback end of a tunnel is accepted as the host that it leads to
//   use                  for both TLS servers and TLS clients
//
// USER determines whose sessions the holder may open, list and take over; a node serves one user.
#pragma once

#include <string>
#include <vector>

#include "tools/keys/openssl.h"

namespace vgpu::keys {

struct Pair {
  Certificate certificate;
  PrivateKey key;
};

struct Subject {
  std::string user;
  std::vector<std::string> names;  // host names or IP addresses
};

// Throws kj::Exception if `text` cannot be used as a user's or a host's name in a certificate.
void requireName(const std::string& text);

// A self-signed CA.
Pair makeAuthority(const Subject& subject, unsigned days);
Pair issue(const Pair& authority, const Subject& subject, unsigned days);

// Empty if the certificate names none.
std::string userOf(const X509& certificate);
std::vector<std::string> namesOf(const X509& certificate);
bool isFor(const X509& certificate, const std::string& host);
// The begin and end of its validity: "2027-11-23 10:00 UTC".
std::string beginOf(const X509& certificate);
std::string endOf(const X509& certificate);
// Such as "gpu-1 of alice".
std::string holderOf(const X509& certificate);
// The CA's subject: "the CA of alice on laptop".
std::string issuerOf(const X509& certificate);

}  // namespace vgpu::keys
