#include "tools/relay/tls-stream.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "tools/relay/peer-check.h"
#include "tools/relay/tls-buffers.h"

namespace vgpu::relay {
namespace {

using keys::Owned;
using keys::require;
using Context = Owned<SSL_CTX, SSL_CTX_free>;
using Connection = Owned<SSL, SSL_free>;

// Limits what is read of a stranger's certificates before they are checked; ours take less than 1 KiB.
constexpr long mostCertificateBytes = 16 << 10;
// How much is encrypted before it is sent: several records (of 16 KiB).
constexpr size_t mostEncrypted = 256 << 10;
// 128-bit AES first, which is faster and as strong as the certificates.
constexpr const char* ciphers = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
// How long a rejected peer has to read the reason. If we closed before it has finished writing, the connection would be reset.
constexpr std::chrono::seconds farewell{1};
constexpr size_t mostFarewellBytes = 64 << 10;

Context contextOf(const keys::Identity& own) {
  Context context(SSL_CTX_new(TLS_method()));
  require(context != nullptr, "begin a connection");
  SSL_CTX* made = context.get();
  bool isSet = SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) == 1 &&
               SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) == 1 && SSL_CTX_set_ciphersuites(made, ciphers) == 1 &&
               SSL_CTX_use_certificate(made, own.certificate.get()) == 1 && SSL_CTX_use_PrivateKey(made, own.key.get()) == 1 &&
               X509_STORE_add_cert(SSL_CTX_get_cert_store(made), own.authority.get()) == 1 &&
               SSL_CTX_set_num_tickets(made, 0) == 1;
  require(isSet, "use the keys");
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);  // each connection must present its certificates
  SSL_CTX_set_max_cert_list(made, mostCertificateBytes);
  SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

class TlsStream final : public ByteStream {
 public:
  TlsStream(kj::AutoCloseFd connected, keys::Identity identity, std::string host)
      : socket(kj::mv(connected)),
        buffers(socket),
        own(std::move(identity)),
        context(contextOf(own)),
        connection(SSL_new(context.get())),
        check(own, std::move(host)) {
    KJ_SYSCALL(fcntl(socket, F_SETFL, O_NONBLOCK));
    require(connection != nullptr, "begin a connection");
    BIO* bio = buffers.makeBio();
    SSL_set_bio(connection.get(), bio, bio);
    check.watch(connection.get());
  }

  SSL* get() { return connection.get(); }

  // Throws kj::Exception if it fails; the other side has been sent the reason.
  void shakeHands(GreetingDeadline deadline) {
    while (true) {
      ERR_clear_error();
      const int result = SSL_do_handshake(connection.get());
      const bool waits = result != 1 && SSL_get_error(connection.get(), result) == SSL_ERROR_WANT_READ;
      std::string why = result == 1 || waits ? "" : check.problemOf(connection.get(), result);
      while (!buffers.flush() && errno == EAGAIN) awaitReady(socket, POLLOUT, deadline);  // this also sends the alert of a failed handshake
      if (result == 1) return;
      if (waits) {
        awaitReady(socket, POLLIN, deadline);
        continue;
      }
      takeLeave();
      kj::throwFatalException(
          kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__, kj::heapString(why.data(), why.size())));
    }
  }

  size_t read(std::span<std::byte> room) override {
    size_t all = 0;
    while (all < room.size() && bringsMore()) {
      size_t got = 0;
      if (SSL_has_pending(connection.get()) == 0 && !buffers.hasInput() && errno == EAGAIN) break;
      ERR_clear_error();
      const int result = SSL_read_ex(connection.get(), room.data() + all, room.size() - all, &got);
      all += got;
      if (result != 1 && !waits(result)) break;
    }
    return all;
  }

  // Bytes that were encrypted but not sent count as not taken: the caller passes them again, and they are not encrypted again.
  size_t write(std::span<const std::byte> bytes) override {
    size_t all = 0;
    while (takesMore()) {
      if (!buffers.flush()) {
        if (errno != EAGAIN) endWriting(std::strerror(errno));
        return all;
      }
      all += encrypted;
      encrypted = 0;
      if (all >= bytes.size()) return all;
      ERR_clear_error();
      const int result =
          SSL_write_ex(connection.get(), bytes.data() + all, std::min(bytes.size() - all, mostEncrypted), &encrypted);
      if (result != 1) endWriting(check.problemOf(connection.get(), result));
    }
    return all;
  }

  int fd() const override { return socket; }
  short eventsOf(bool reading, bool writing) const override {
    return static_cast<short>((reading ? POLLIN : 0) | (writing ? POLLOUT : 0));
  }

 private:
  // Whether the call that returned `result` needs more input; otherwise it has failed.
  bool waits(int result) {
    if (SSL_get_error(connection.get(), result) == SSL_ERROR_WANT_READ) return true;
    endReading(check.problemOf(connection.get(), result));
    return false;
  }

  void takeLeave() {
    shutdown(socket, SHUT_WR);
    const auto until = std::chrono::steady_clock::now() + farewell;
    std::array<char, 4096> dropped;
    for (size_t all = 0; all < mostFarewellBytes;) {
      ssize_t got = recv(socket, dropped.data(), dropped.size(), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
      if (got > 0) all += static_cast<size_t>(got);
      if (got < 0 && kj::runCatchingExceptions([&] { awaitReady(socket, POLLIN, until); }) != nullptr) return;
    }
  }

  kj::AutoCloseFd socket;
  TlsBuffers buffers;  // must outlive the connection
  const keys::Identity own;
  Context context;
  Connection connection;
  PeerCheck check;
  size_t encrypted = 0;  // bytes of the next write() that are encrypted already
};

}  // namespace

std::unique_ptr<ByteStream> connectTls(kj::AutoCloseFd connection, keys::Identity own, const Endpoint& node,
                                       GreetingDeadline deadline) {
  auto stream = std::make_unique<TlsStream>(kj::mv(connection), std::move(own), node.host);
  SSL_set_connect_state(stream->get());
  stream->shakeHands(deadline);
  return stream;
}

std::unique_ptr<ByteStream> acceptTls(kj::AutoCloseFd connection, keys::Identity own, GreetingDeadline deadline) {
  auto stream = std::make_unique<TlsStream>(kj::mv(connection), std::move(own), "");
  SSL_set_accept_state(stream->get());
  stream->shakeHands(deadline);
  return stream;
}

}  // namespace vgpu::relay
