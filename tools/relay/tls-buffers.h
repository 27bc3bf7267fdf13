// What is encrypted, between OpenSSL and a socket: many records are read from the socket at once, and many are written at once.
//
// OpenSSL's own buffer for reading ahead is moved to its beginning with each record that is taken out of it, and each record is
// written by a call of its own. One thread.
#pragma once

#include <openssl/bio.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace vgpu::relay {

class TlsBuffers {
 public:
  // `socket`: non-blocking.
  explicit TlsBuffers(int socket);
  TlsBuffers(const TlsBuffers&) = delete;

  // For OpenSSL to read from and to write to; whoever gets it owns it, and must not use it after this.
  BIO* makeBio();

  // Whether bytes have been received that OpenSSL has not taken; asks the socket for more if not. If
  // there is no more, errno says why: 0 at the end.
  bool hasInput();
  // Sends what OpenSSL has written. Whether all of it is sent; if not, errno says why.
  bool flush();

 private:
  static int readFrom(BIO* bio, char* to, int room);
  static int writeTo(BIO* bio, const char* from, int bytes);
  static long control(BIO* bio, int command, long number, void* pointer);
  static const BIO_METHOD* method();

  const int socket;
  const std::unique_ptr<std::byte[]> input;
  size_t taken = 0, filled = 0;
  bool isAtEnd = false;
  std::vector<std::byte> output;
  size_t sent = 0;
};

}  // namespace vgpu::relay
