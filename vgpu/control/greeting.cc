#include "vgpu/control/greeting.h"

#include <kj/debug.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vgpu/base/fail.h"

namespace vgpu {
namespace {

constexpr char magic[8] = {'V', 'G', 'P', 'U', 'L', 'I', 'N', 'K'};
constexpr uint32_t mostReasonBytes = 1024;

struct Asked {
  char magic[8];
  uint32_t version, what;
  uint8_t token[16];
  uint64_t received;
  uint8_t reserved[24];
};
static_assert(sizeof(Asked) == 64);

enum Status : uint32_t { accepted = 0, refused = 1 };
struct Answered {
  char magic[8];
  uint32_t version, status;
  uint64_t received;
  uint32_t reasonBytes, reserved;
};
static_assert(sizeof(Answered) == 32);

[[noreturn]] void raise(kj::Exception::Type type, const char* message) {
  kj::throwFatalException(kj::Exception(type, __FILE__, __LINE__, kj::str(message)));
}

void await(int socket, short events, GreetingDeadline deadline) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd polled{socket, events, 0};
    int ready = poll(&polled, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return;
    if (ready == 0) raise(kj::Exception::Type::OVERLOADED, "the peer says nothing");
    if (errno != EINTR) KJ_FAIL_SYSCALL("poll", errno);
  }
}

void readAll(int socket, void* to, size_t bytes, GreetingDeadline deadline) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    ssize_t got = recv(socket, at, bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET))
      raise(kj::Exception::Type::DISCONNECTED, "the peer has closed the connection");
    if (got > 0) {
      at += got;
      bytes -= static_cast<size_t>(got);
    } else if (errno == EAGAIN) {
      await(socket, POLLIN, deadline);
    } else if (errno != EINTR) {
      KJ_FAIL_SYSCALL("recv", errno);
    }
  }
}

void writeAll(int socket, const void* from, size_t bytes, GreetingDeadline deadline) {
  auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    ssize_t put = send(socket, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) {
      at += put;
      bytes -= static_cast<size_t>(put);
    } else if (errno == EAGAIN) {
      await(socket, POLLOUT, deadline);
    } else if (errno == EPIPE || errno == ECONNRESET) {
      raise(kj::Exception::Type::DISCONNECTED, "the peer has closed the connection");
    } else if (errno != EINTR) {
      KJ_FAIL_SYSCALL("send", errno);
    }
  }
}

void answer(int socket, Status status, uint64_t received, std::string reason, GreetingDeadline deadline) {
  reason.resize(std::min<size_t>(reason.size(), mostReasonBytes));
  Answered answered{{}, greetingVersion, status, received, static_cast<uint32_t>(reason.size()), 0};
  std::copy(std::begin(magic), std::end(magic), answered.magic);
  writeAll(socket, &answered, sizeof answered, deadline);
  writeAll(socket, reason.data(), reason.size(), deadline);
}

}  // namespace

std::string textOf(const SessionToken& token) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : token) text += {digits[byte >> 4], digits[byte & 15]};
  return text;
}

SessionToken newSessionToken() {
  SessionToken token;
  KJ_SYSCALL(getrandom(token.data(), token.size(), 0));
  return token;
}

uint64_t greet(int socket, const Greeting& greeting, const std::string& node, GreetingDeadline deadline) {
  Asked asked{{}, greetingVersion, static_cast<uint32_t>(greeting.what), {}, greeting.received, {}};
  std::copy(std::begin(magic), std::end(magic), asked.magic);
  std::copy(greeting.token.begin(), greeting.token.end(), asked.token);
  writeAll(socket, &asked, sizeof asked, deadline);
  Answered answered;
  readAll(socket, &answered, sizeof answered, deadline);
  if (std::memcmp(answered.magic, magic, sizeof magic) != 0 || answered.reasonBytes > mostReasonBytes)
    fail("what listens on " + node + " is no vgpud");
  if (answered.version != greetingVersion)
    fail("the vgpud on " + node + " speaks version " + std::to_string(answered.version) + " of the link, this one version " +
         std::to_string(greetingVersion) + ": use the same vgpu for both");
  std::string reason(answered.reasonBytes, '\0');
  readAll(socket, reason.data(), reason.size(), deadline);
  if (answered.status != accepted) fail("the vgpud on " + node + " refused: " + reason);
  return answered.received;
}

Greeting receiveGreeting(int socket, GreetingDeadline deadline) {
  Asked asked;
  readAll(socket, &asked, sizeof asked, deadline);
  if (std::memcmp(asked.magic, magic, sizeof magic) != 0) fail("it is no vgpu");
  if (asked.version != greetingVersion) {
    answer(socket, refused, 0, "", deadline);  // the version in the answer says it all
    fail("it speaks version " + std::to_string(asked.version) + " of the link, this vgpud version " +
         std::to_string(greetingVersion));
  }
  Greeting greeting{static_cast<GreetingFor>(asked.what), {}, asked.received};
  std::copy(std::begin(asked.token), std::end(asked.token), greeting.token.begin());
  return greeting;
}

void acceptGreeting(int socket, uint64_t received, GreetingDeadline deadline) {
  answer(socket, accepted, received, "", deadline);
}

void refuseGreeting(int socket, const std::string& reason, GreetingDeadline deadline) {
  answer(socket, refused, 0, reason, deadline);
}

}  // namespace vgpu
