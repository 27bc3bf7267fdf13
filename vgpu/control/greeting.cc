#include "vgpu/control/greeting.h"

#include <kj/debug.h>
#include <poll.h>
#include <sys/random.h>

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
  uint64_t received, attempt;
  uint8_t reserved[16];
};
static_assert(sizeof(Asked) == 64);

enum Status : uint32_t { accepted = 0, refused = 1 };
struct Answered {
  char magic[8];
  uint32_t version, status;
  uint64_t received;
  uint32_t reasonBytes, connection;
};
static_assert(sizeof(Answered) == 32);

[[noreturn]] void raise(kj::Exception::Type type, const std::string& message) {
  kj::throwFatalException(kj::Exception(type, __FILE__, __LINE__, kj::heapString(message.data(), message.size())));
}

void requireGoingOn(const ByteStream& stream) {
  if (stream.hasEnded()) raise(kj::Exception::Type::DISCONNECTED, stream.whyEnded());
}

void readAll(ByteStream& stream, std::span<std::byte> room, GreetingDeadline deadline) {
  while (true) {
    room = room.subspan(stream.read(room));
    if (room.empty()) return;
    requireGoingOn(stream);
    awaitReady(stream.fd(), stream.eventsOf(true, false), deadline);
  }
}

void writeAll(ByteStream& stream, std::span<const std::byte> bytes, GreetingDeadline deadline) {
  while (true) {
    bytes = bytes.subspan(stream.write(bytes));
    if (bytes.empty()) return;
    requireGoingOn(stream);
    awaitReady(stream.fd(), stream.eventsOf(false, true), deadline);
  }
}

template <typename T>
std::span<const std::byte> bytesOf(const T& one) {
  return std::as_bytes(std::span(&one, 1));
}

// The first bytes of a TLS handshake or alert record (RFC 8446, 5.1).
bool isTls(const void* bytes) {
  auto* at = static_cast<const uint8_t*>(bytes);
  return (at[0] == 21 || at[0] == 22) && at[1] == 3;
}

void answer(ByteStream& stream, Status status, const GreetingAnswer& said, std::string reason, GreetingDeadline deadline) {
  reason.resize(std::min<size_t>(reason.size(), mostReasonBytes));
  Answered answered{{}, greetingVersion, status, said.received, static_cast<uint32_t>(reason.size()), said.connection};
  std::copy(std::begin(magic), std::end(magic), answered.magic);
  writeAll(stream, bytesOf(answered), deadline);
  writeAll(stream, std::as_bytes(std::span(reason)), deadline);
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

void awaitReady(int fd, short events, GreetingDeadline deadline) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd polled{fd, events, 0};
    int ready = poll(&polled, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return;
    if (ready == 0) raise(kj::Exception::Type::OVERLOADED, "the other side sends nothing");
    if (errno != EINTR) KJ_FAIL_SYSCALL("poll", errno);
  }
}

GreetingAnswer greet(ByteStream& stream, const Greeting& greeting, const std::string& node, GreetingDeadline deadline) {
  Asked asked{{}, greetingVersion, static_cast<uint32_t>(greeting.what), {}, greeting.received, greeting.attempt, {}};
  std::copy(std::begin(magic), std::end(magic), asked.magic);
  std::copy(greeting.token.begin(), greeting.token.end(), asked.token);
  writeAll(stream, bytesOf(asked), deadline);
  Answered answered{};
  auto answer = std::as_writable_bytes(std::span(&answered, 1));
  constexpr size_t ofTls = 2;
  readAll(stream, answer.first(ofTls), deadline);
  if (isTls(&answered)) fail("what listens on " + node + " takes TLS only: use tls: instead of tcp:");
  readAll(stream, answer.subspan(ofTls), deadline);
  if (std::memcmp(answered.magic, magic, sizeof magic) != 0 || answered.reasonBytes > mostReasonBytes)
    fail("what listens on " + node + " is not a vgpud");
  if (answered.version != greetingVersion)
    fail("the vgpud on " + node + " speaks version " + std::to_string(answered.version) + " of the link, this one version " +
         std::to_string(greetingVersion) + ": use the same vgpu for both");
  std::string reason(answered.reasonBytes, '\0');
  readAll(stream, std::as_writable_bytes(std::span(reason)), deadline);
  if (answered.status != accepted) fail("the vgpud on " + node + " refused: " + reason);
  return {answered.received, answered.connection};
}

Greeting receiveGreeting(ByteStream& stream, GreetingDeadline deadline) {
  Asked asked;
  readAll(stream, std::as_writable_bytes(std::span(&asked, 1)), deadline);
  if (isTls(&asked)) fail("it speaks TLS, but this port takes plain TCP: use tcp: there, or start this vgpud with --listen tls:");
  if (std::memcmp(asked.magic, magic, sizeof magic) != 0) fail("it is not vgpu");
  if (asked.version != greetingVersion) {
    answer(stream, refused, {}, "", deadline);  // the version in the answer is the reason
    fail("it speaks version " + std::to_string(asked.version) + " of the link, this vgpud version " +
         std::to_string(greetingVersion));
  }
  Greeting greeting{static_cast<GreetingFor>(asked.what), {}, asked.received, asked.attempt};
  std::copy(std::begin(asked.token), std::end(asked.token), greeting.token.begin());
  return greeting;
}

void acceptGreeting(ByteStream& stream, const GreetingAnswer& said, GreetingDeadline deadline) {
  answer(stream, accepted, said, "", deadline);
}

void refuseGreeting(ByteStream& stream, const std::string& reason, GreetingDeadline deadline) {
  answer(stream, refused, {}, reason, deadline);
}

}  // namespace vgpu
