// Uses the functions of one algorithm: OpenSSL's EVP interface, which it recommends, would bring all algorithms and process-wide state into
// every program.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "vgpu/wire/image-digest.h"

#include <openssl/sha.h>

namespace vgpu {

ImageDigest digestOf(std::span<const std::byte> image) {
  static_assert(sizeof(ImageDigest) == SHA256_DIGEST_LENGTH);
  ImageDigest digest;
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, image.data(), image.size());
  SHA256_Final(digest.data(), &state);
  return digest;
}

std::string hexOf(const ImageDigest& digest) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace vgpu
