#include "vgpu/control/endpoint.h"

#include <doctest/doctest.h>
#include <kj/exception.h>

namespace vgpu {

TEST_CASE("an address says how a node is reached, and reads as it is written") {
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

TEST_CASE("what is no address is refused, and what is none of these schemes is left to others") {
  for (const char* wrong : {"tcp:", "tcp:host", "tcp:host:", "tcp::7", "tcp:host:x", "tcp:host:65536", "tcp:host:-1", "tls:host",
                            "tls:host:99999999999999999999", "tls://", "vsock:host:7", "vsock:-1:7", "vsock:4294967295:7",
                            "vsock:2:4294967295", "vsock:2", "vsock::7"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH_AS(parseEndpoint(wrong), doctest::Contains("is no address of a node"), kj::Exception);
  }
  for (const char* other : {"unix:/a/b", "/a/b", "", "here", "tl:a:1", "TCP:a:1"}) CHECK(!parseEndpoint(other));
}

TEST_CASE("plain connections are listened for where only this host's users come, or where that is allowed") {
  CHECK_THROWS_WITH_AS(listenOn(*parseEndpoint("tcp:0.0.0.0:0"), false), doctest::Contains("tls:0.0.0.0:PORT"), kj::Exception);
  CHECK_THROWS_WITH_AS(listenOn(*parseEndpoint("vsock:any:0"), false), doctest::Contains("--allow-plain"), kj::Exception);
  CHECK_NOTHROW(listenOn(*parseEndpoint("tcp:127.0.0.1:0"), false));
  CHECK_NOTHROW(listenOn(*parseEndpoint("tcp:0.0.0.0:0"), true));
  CHECK_NOTHROW(listenOn(*parseEndpoint("tls:0.0.0.0:0"), false));
}

}  // namespace vgpu
