#include "tools/relay/tls-buffers.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/keys/identity.h"

namespace vgpu::relay {
namespace {

constexpr size_t inputBytes = 256 << 10;

TlsBuffers& buffersOf(BIO* bio) { return *static_cast<TlsBuffers*>(BIO_get_data(bio)); }

}  // namespace

TlsBuffers::TlsBuffers(int socket) : socket(socket), input(new std::byte[inputBytes]) {}

const BIO_METHOD* TlsBuffers::method() {
  static const BIO_METHOD* made = [] {
    BIO_METHOD* one = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "vgpu buffers");
    keys::require(one != nullptr && BIO_meth_set_read(one, readFrom) == 1 && BIO_meth_set_write(one, writeTo) == 1 &&
                      BIO_meth_set_ctrl(one, control) == 1,
                  "begin a connection");
    return one;
  }();
  return made;
}

BIO* TlsBuffers::makeBio() {
  BIO* bio = BIO_new(method());
  keys::require(bio != nullptr, "begin a connection");
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  return bio;
}

bool TlsBuffers::hasInput() {
  if (taken < filled) return true;
  ssize_t got;
  do got = recv(socket, input.get(), inputBytes, 0);
  while (got < 0 && errno == EINTR);
  isAtEnd = got == 0;
  if (isAtEnd) errno = 0;
  taken = 0;
  filled = got > 0 ? static_cast<size_t>(got) : 0;
  return filled > 0;
}

bool TlsBuffers::flush() {
  while (sent < output.size()) {
    const ssize_t put = send(socket, output.data() + sent, output.size() - sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    sent += static_cast<size_t>(put);
  }
  output.clear();
  sent = 0;
  return true;
}

int TlsBuffers::readFrom(BIO* bio, char* to, int room) {
  TlsBuffers& buffers = buffersOf(bio);
  BIO_clear_retry_flags(bio);
  if (!buffers.hasInput()) {
    if (buffers.isAtEnd) return 0;
    if (errno == EAGAIN) BIO_set_retry_read(bio);
    return -1;
  }
  const size_t bytes = std::min(static_cast<size_t>(room), buffers.filled - buffers.taken);
  std::memcpy(to, &buffers.input[buffers.taken], bytes);
  buffers.taken += bytes;
  return static_cast<int>(bytes);
}

// Callers flush between OpenSSL's writes, so this holds at most one piece.
int TlsBuffers::writeTo(BIO* bio, const char* from, int bytes) {
  TlsBuffers& buffers = buffersOf(bio);
  BIO_clear_retry_flags(bio);
  const auto* first = static_cast<const std::byte*>(static_cast<const void*>(from));
  buffers.output.insert(buffers.output.end(), first, first + bytes);
  return bytes;
}

long TlsBuffers::control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return buffersOf(bio).isAtEnd ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

}  // namespace vgpu::relay
