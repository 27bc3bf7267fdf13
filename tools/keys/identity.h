// The key files, in ~/.config/vgpu/keys ($VGPU_KEYS names another folder, $XDG_CONFIG_HOME another ~/.config), 0700:
//
//   identity.pem   0600  this user's identity on this host: a private key, its certificate, and the CA's certificate. `vgpuctl keys
//                        issue` makes the same file for another host, where it must be stored under this name
//   ca.pem         0600  the CA's private key and certificate, on the host where `vgpuctl keys init` has made it
//
// A file is read again for each connection, so a new one takes effect at once. Files must belong to us (or root) and be inaccessible to
// others.
#pragma once

#include <string>

#include "tools/keys/certificate.h"

namespace vgpu::keys {

std::string keyFolder();
std::string ownIdentityFile();
std::string authorityFile();

struct Identity {
  PrivateKey key;
  Certificate certificate;
  Certificate authority;  // certificates that it has issued are trusted
  std::string file;
};

// Both throw kj::Exception, saying what to do, if the file is missing, cannot be read, is accessible to others, or has the wrong content.
Identity readIdentity(const std::string& file);
Pair readAuthority();

// The text of such a file.
std::string textOf(const Pair& pair, const X509* authority);

}  // namespace vgpu::keys
