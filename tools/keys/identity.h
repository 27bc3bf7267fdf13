// The files of keys, in ~/.config/vgpu/keys ($VGPU_KEYS names another folder, $XDG_CONFIG_HOME another ~/.config), 0700:
//
//   identity.pem   0600  who this user is on this host: a private key, its certificate, and the CA's certificate. `vgpuctl keys
//                        issue` makes the same for another host, as one file, to be put there under this name
//   ca.pem         0600  the CA's private key and certificate, on the host where `vgpuctl keys init` has made it
//
// A file is read again for each connection, so a new one counts at once. Files are not trusted blindly: they must belong to us
// (or root) and be closed to others.
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
  Certificate authority;  // whose certificates are trusted
  std::string file;
};

// Both throw kj::Exception if the file is missing, cannot be read, is open to others, or is not what it should be; with what to
// do.
Identity readIdentity(const std::string& file);
Pair readAuthority();

// As text to be written into such a file.
std::string textOf(const Pair& pair, const X509* authority);

}  // namespace vgpu::keys
