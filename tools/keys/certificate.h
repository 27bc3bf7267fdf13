// Certificates of users and hosts: X.509, as any CA can make them.
//
//   subject              UID=USER, CN=the first name
//   subject alternative  the names and addresses of the host that may listen with it, and localhost with its addresses, so that a
//                        tunnel's end on loopback is the host that it leads to
//   use                  of both a TLS server and a client
//
// USER says whose sessions its holder may open, list and take over; a node serves one user.
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
  std::vector<std::string> names;  // of hosts, or IP addresses
};

// Throws kj::Exception if `text` cannot be in a certificate as a user's, or a host's, name.
void requireName(const std::string& text);

// A CA's own.
Pair makeAuthority(const Subject& subject, unsigned days);
Pair issue(const Pair& authority, const Subject& subject, unsigned days);

// Empty if it names none.
std::string userOf(const X509& certificate);
std::vector<std::string> namesOf(const X509& certificate);
bool isFor(const X509& certificate, const std::string& host);
// When it begins and ends to be valid: "2027-11-23 10:00 UTC".
std::string beginOf(const X509& certificate);
std::string endOf(const X509& certificate);
// "gpu-1 of alice".
std::string holderOf(const X509& certificate);
// The CA's subject: "the CA of alice on laptop".
std::string issuerOf(const X509& certificate);

}  // namespace vgpu::keys
