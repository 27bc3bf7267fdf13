#include "vgpu/control/endpoint.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/exception.h>
#include <netdb.h>

#include <bit>
#include <cerrno>
#include <string>

// Replaces the C library's getaddrinfo for names that choose a result.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* wanted, addrinfo** found) {
  const std::string asked = name == nullptr ? "" : name;
  if (asked == "no-reply.test") return EAI_AGAIN;
  if (asked == "no-descriptors.test") return errno = EMFILE, EAI_SYSTEM;
  if (asked == "no-such-host.test") return EAI_NONAME;
  static const auto system = std::bit_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return system(name, service, wanted, found);
}

namespace vgpu {
namespace {

kj::Exception connectFailure(const char* address) {
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { connectTo(*parseEndpoint(address)); })) return kj::mv(*exception);
  KJ_FAIL_REQUIRE("it is connected", address);
}

}  // namespace

TEST_CASE("a name that cannot be resolved now is a node that does not answer now; an unknown name is an error") {
  for (const std::string passing : {"tcp:no-reply.test:7000", "tls:no-descriptors.test:7000"}) {
    CAPTURE(passing);
    CHECK(connectFailure(passing.c_str()).getType() == kj::Exception::Type::DISCONNECTED);
  }
  const auto unknown = connectFailure("tcp:no-such-host.test:7000");
  CHECK(unknown.getType() == kj::Exception::Type::FAILED);
  CHECK(std::string(unknown.getDescription().cStr()).starts_with("the address tcp:no-such-host.test:7000 cannot be resolved: "));
}

TEST_CASE("an address says how a node is reached, and parses back from its text") {
  struct Case {
    const char *text, *host, *port;
    Transport transport;
  };
  for (auto [text, host, port, transport] :
       {Case{"tcp:127.0.0.1:7000", "127.0.0.1", "7000", Transport::tcp}, Case{"tls:gpu-1:0", "gpu-1", "0", Transport::tls},
        Case{"tls:[::1]:7000", "::1", "7000", Transport::tls}, Case{"vsock:2:7000", "2", "7000", Transport::vsock},
        Case{"vsock:any:4000000000", "any", "4000000000", Transport::vsock}}) {
    CAPTURE(text);
    auto endpoint = parseEndpoint(text);
    REQUIRE(endpoint);
    CHECK(endpoint->transport == transport);
    CHECK(endpoint->host == host);
    CHECK(endpoint->port == port);
    CHECK(endpoint->text() == text);
  }
  CHECK(parseEndpoint("tls://gpu-1:7000")->text() == "tls:gpu-1:7000");
  CHECK(parseEndpoint("vsock://2:7000")->text() == "vsock:2:7000");
}

TEST_CASE("an invalid address is refused, and other schemes are left to other parsers") {
  for (const char* wrong : {"tcp:", "tcp:host", "tcp:host:", "tcp::7", "tcp:host:x", "tcp:host:65536", "tcp:host:-1", "tls:host",
                            "tls:host:99999999999999999999", "tls://", "vsock:host:7", "vsock:-1:7", "vsock:4294967295:7",
                            "vsock:2:4294967295", "vsock:2", "vsock::7"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH_AS(parseEndpoint(wrong), doctest::Contains("is not the address of a node"), kj::Exception);
  }
  for (const char* other : {"unix:/a/b", "/a/b", "", "here", "tl:a:1", "TCP:a:1"}) CHECK(!parseEndpoint(other));
}

TEST_CASE("plain connections are accepted only from this host's users, or if they are allowed explicitly") {
  CHECK_THROWS_WITH_AS(listenOn(*parseEndpoint("tcp:0.0.0.0:0"), false), doctest::Contains("tls:0.0.0.0:PORT"), kj::Exception);
  CHECK_THROWS_WITH_AS(listenOn(*parseEndpoint("vsock:any:0"), false), doctest::Contains("--allow-plain"), kj::Exception);
  CHECK_NOTHROW(listenOn(*parseEndpoint("tcp:127.0.0.1:0"), false));
  CHECK_NOTHROW(listenOn(*parseEndpoint("tcp:0.0.0.0:0"), true));
  CHECK_NOTHROW(listenOn(*parseEndpoint("tls:0.0.0.0:0"), false));
}

}  // namespace vgpu
