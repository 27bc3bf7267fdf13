#include "tools/keys/openssl.h"

#include <openssl/err.h>

#include "vgpu/base/fail.h"

namespace vgpu::keys {

std::string openSslReason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "OpenSSL gives no reason" : reason;
}

void require(bool succeeded, const char* what) {
  if (!succeeded) fail(std::string("OpenSSL cannot ") + what + ": " + openSslReason());
}

}  // namespace vgpu::keys
