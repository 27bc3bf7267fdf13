// TLS handshakes of two ends in one process: which peers are admitted, and the errors on both sides.
#include "tools/relay/tls-stream.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <random>
#include <thread>
#include <vector>

namespace vgpu::relay {
namespace {

using keys::Identity;
using keys::Pair;

constexpr unsigned days = 30;
const keys::Subject authoritySubject{"alice", {"laptop"}};

GreetingDeadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

Identity identityOf(Pair own, const Pair& authority) {
  X509_up_ref(authority.certificate.get());
  return {std::move(own.key), std::move(own.certificate), keys::Certificate(authority.certificate.get()), "a file"};
}
Identity issued(const Pair& authority, const std::string& user, const std::string& host) {
  return identityOf(keys::issue(authority, {user, {host}}, days), authority);
}
// The same, valid from `from` to `to` seconds from now.
Identity issuedFor(const Pair& authority, long from, long to) {
  Pair own = keys::issue(authority, {"alice", {"gpu-1"}}, days);
  X509_gmtime_adj(X509_getm_notBefore(own.certificate.get()), from);
  X509_gmtime_adj(X509_getm_notAfter(own.certificate.get()), to);
  REQUIRE(X509_sign(own.certificate.get(), authority.key.get(), EVP_sha256()) > 0);
  return identityOf(std::move(own), authority);
}

struct Sockets {
  kj::AutoCloseFd node, tool;
  Sockets() {
    int ends[2];
    KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    node = kj::AutoCloseFd(ends[0]);
    tool = kj::AutoCloseFd(ends[1]);
  }
};

std::string reasonOf(kj::FunctionParam<void()> work) {
  auto caught = kj::runCatchingExceptions([&] { work(); });
  KJ_IF_MAYBE (exception, caught) {
    CHECK(exception->getType() == kj::Exception::Type::DISCONNECTED);  // a new attempt may succeed
    return exception->getDescription().cStr();
  }
  return "";
}

struct Meeting {
  std::unique_ptr<ByteStream> node, tool;
  std::string atNode, atTool;  // why the handshake failed
};

// A tool that asks for `host` connects to a node. A message that it reads before the node has accepted it is the reason for a refusal.
Meeting meet(Identity tool, Identity node, const std::string& host) {
  signal(SIGPIPE, SIG_IGN);  // as the relays do
  Sockets sockets;
  Meeting meeting;
  std::thread serving([&] {
    meeting.atNode = reasonOf([&] { meeting.node = acceptTls(kj::mv(sockets.node), std::move(node), soon()); });
    if (meeting.node != nullptr) meeting.node->write(std::as_bytes(std::span("!", 1)));
  });
  meeting.atTool = reasonOf([&] {
                     meeting.tool = connectTls(kj::mv(sockets.tool), std::move(tool), {Transport::tls, host, "7000"}, soon());
                     std::byte first;
                     while (meeting.tool->read({&first, 1}) == 0 && !meeting.tool->hasEnded())
                       awaitReady(meeting.tool->fd(), meeting.tool->eventsOf(true, false), soon());
                     meeting.atTool = meeting.tool->whyEnded();
                   }) +
                   meeting.atTool;
  serving.join();
  return meeting;
}

bool says(const std::string& text, const char* words) {
  CAPTURE(text);
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("two certificates of one CA and user are accepted, and bytes arrive unchanged") {
  Pair authority = keys::makeAuthority(authoritySubject, days);
  for (const char* host : {"gpu-1", "localhost", "127.0.0.1", "::1"}) {
    Meeting met = meet(issued(authority, "alice", "laptop"), issued(authority, "alice", "gpu-1"), host);
    CAPTURE(met.atNode);
    CAPTURE(met.atTool);
    REQUIRE(met.node != nullptr);
    REQUIRE(met.tool != nullptr);
    CHECK(met.atTool == "");
    // More than the sockets' buffers hold, in pieces of any size, so that both sides block in the middle of records.
    std::mt19937 random(7);
    std::vector<std::byte> sent(4 << 20), received;
    for (std::byte& byte : sent) byte = static_cast<std::byte>(random());
    for (size_t put = 0, end = 0; received.size() < sent.size();) {
      if (put == end) end = std::min<size_t>(put + 1 + random() % 100'000, sent.size());
      if (put < end) put += met.node->write(std::span(sent).subspan(put, end - put));
      std::vector<std::byte> room(1 + random() % 100'000);
      size_t got = met.tool->read(room);
      received.insert(received.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(got));
      REQUIRE(!met.tool->hasEnded());
      REQUIRE(!met.node->hasEnded());
    }
    CHECK(received == sent);
    met.node = nullptr;
    std::byte last;
    while (!met.tool->hasEnded()) met.tool->read({&last, 1});
    CHECK(says(met.tool->whyEnded(), "closed the connection"));
  }
}

TEST_CASE("a certificate of another CA is refused by the side that sees it") {
  Pair authority = keys::makeAuthority(authoritySubject, days), other = keys::makeAuthority(authoritySubject, days);
  Meeting met = meet(issued(other, "alice", "laptop"), issued(authority, "alice", "gpu-1"), "gpu-1");
  CHECK(says(met.atTool, "is not from our CA (the CA of alice on laptop)"));
  CHECK(says(met.atNode, "does not know the CA of our certificate"));
  // A tool that trusts the node's CA, but whose certificate is of another CA.
  Identity stranger = issued(other, "alice", "laptop");
  X509_up_ref(authority.certificate.get());
  stranger.authority.reset(authority.certificate.get());
  met = meet(std::move(stranger), issued(authority, "alice", "gpu-1"), "gpu-1");
  CHECK(says(met.atNode, "is not from our CA (the CA of alice on laptop)"));
  CHECK(says(met.atTool, "does not know the CA of our certificate"));
}

TEST_CASE("a certificate that has expired, or begins later, is refused with the date") {
  Pair authority = keys::makeAuthority(authoritySubject, days);
  Meeting met = meet(issued(authority, "alice", "laptop"), issuedFor(authority, -7200, -3600), "gpu-1");
  CHECK(says(met.atTool, "its certificate (gpu-1 of alice, by the CA of alice on laptop) has expired on 20"));
  CHECK(says(met.atNode, "our certificate (gpu-1 of alice) has expired"));
  met = meet(issuedFor(authority, -7200, -3600), issued(authority, "alice", "gpu-1"), "gpu-1");
  CHECK(says(met.atNode, "has expired on 20"));
  CHECK(says(met.atTool, "our certificate (gpu-1 of alice) has expired"));
  met = meet(issuedFor(authority, 3600, 7200), issued(authority, "alice", "gpu-1"), "gpu-1");
  CHECK(says(met.atNode, "is valid only from 20"));
  CHECK(says(met.atTool, "does not accept our certificate"));
}

TEST_CASE("another user's certificate is refused, though it has the same CA") {
  Pair authority = keys::makeAuthority(authoritySubject, days);
  Meeting met = meet(issued(authority, "bob", "laptop"), issued(authority, "alice", "gpu-1"), "gpu-1");
  CHECK(says(met.atTool, "is for another user than ours (laptop of bob)"));
  CHECK(says(met.atNode, "its certificate is for another user than ours (gpu-1 of alice)"));
}

TEST_CASE("a node whose name differs from the requested one is refused, with the names that it has") {
  Pair authority = keys::makeAuthority(authoritySubject, days);
  Meeting met = meet(issued(authority, "alice", "laptop"), issued(authority, "alice", "gpu-1"), "gpu-2");
  CHECK(says(met.atTool, "is for gpu-1, localhost, 127.0.0.1, ::1, not for gpu-2"));
  CHECK(says(met.atNode, "it may have asked for another name"));
}

TEST_CASE("a certificate that is not for a host or user, or whose issuer is not a CA, is refused") {
  Pair authority = keys::makeAuthority(authoritySubject, days);
  // The CA's own certificate, and one issued with a host's certificate.
  Pair host = keys::issue(authority, {"alice", {"gpu-1"}}, days);
  Meeting met =
      meet(identityOf(keys::issue(host, {"alice", {"laptop"}}, days), authority), issued(authority, "alice", "gpu-1"), "gpu-1");
  CHECK(says(met.atNode, "is not from our CA"));
}

TEST_CASE("a peer that sends nothing, or garbage, is given up") {
  Pair authority = keys::makeAuthority(authoritySubject, days);
  for (bool says : {false, true}) {
    Sockets sockets;
    if (says) REQUIRE(write(sockets.tool, "VGPULINK and more", 17) == 17);
    auto caught = kj::runCatchingExceptions([&] {
      acceptTls(kj::mv(sockets.node), issued(authority, "alice", "gpu-1"),
                says ? soon() : std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
    });
    REQUIRE(caught != nullptr);
    KJ_IF_MAYBE (exception, caught)
      CHECK(relay::says(exception->getDescription().cStr(), says ? "does not speak TLS" : "sends nothing"));
  }
}

}  // namespace vgpu::relay
