// Buffers of encrypted bytes between OpenSSL and a socket, which read and write many records per system call.
//
// OpenSSL's own read-ahead buffer is moved to its beginning for each record taken from it, and each record is written by a separate system
// call. One thread.
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

  // For OpenSSL to read from and to write to; the caller owns it, and must not use it after this object's end.
  BIO* makeBio();

  // Whether there are received bytes that OpenSSL has not taken; reads from the socket if not. If there are none, errno says why: 0 at the
  // end of the connection.
  bool hasInput();
  // Sends what OpenSSL has written. Returns whether all of it is sent; if not, errno says why.
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
