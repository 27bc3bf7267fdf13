// Owning pointers for OpenSSL's objects, and its errors as exceptions.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace vgpu::keys {

template <auto release>
struct Released {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};
template <typename T, auto release>
using Owned = std::unique_ptr<T, Released<release>>;

using Certificate = Owned<X509, X509_free>;
using PrivateKey = Owned<EVP_PKEY, EVP_PKEY_free>;
using Bio = Owned<BIO, BIO_free_all>;

// OpenSSL's latest error, which is cleared.
std::string openSslReason();
// Throws kj::Exception if `succeeded` is false: that `what` could not be done, and why.
void require(bool succeeded, const char* what);

}  // namespace vgpu::keys
