#include "vgpu/control/channel.h"

#include <capnp/serialize.h>
#include <kj/debug.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace vgpu {
namespace {

constexpr uint32_t mostSegments = 64;

// A buffer for the descriptors of one message, aligned for cmsghdr.
union Ancillary {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int) * ControlChannel::mostDescriptors)];
};

[[noreturn]] void disconnected(const char* what) {
  kj::throwFatalException(kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__, kj::str(what)));
}

void attach(msghdr& header, Ancillary& room, kj::ArrayPtr<const int> descriptors) {
  header.msg_control = room.bytes;
  header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
  cmsghdr* item = CMSG_FIRSTHDR(&header);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  std::memcpy(CMSG_DATA(item), descriptors.begin(), descriptors.size() * sizeof(int));
}

void collect(msghdr& header, std::vector<kj::AutoCloseFd>& descriptors) {
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof(fd));
      descriptors.emplace_back(fd);
    }
  }
}

// The number of words of all segments, from a segment table whose first half-word is the number of segments less one.
size_t bodyWords(kj::ArrayPtr<const uint32_t> table) {
  size_t words = 0;
  for (uint32_t i = 0; i <= table[0]; ++i) words += table[1 + i];
  return words;
}

}  // namespace

ControlChannel::ControlChannel(kj::AutoCloseFd socket, int wake) : socket(kj::mv(socket)), wake(wake) {}

void ControlChannel::await(short events, const Deadline& deadline) {
  pollfd polled[] = {{socket, events, 0}, {wake, POLLIN, 0}};
  while (true) {
    int milliseconds = -1;
    if (deadline) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now()).count();
      milliseconds = static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
    }
    int ready = poll(polled, wake < 0 ? 1 : 2, milliseconds);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) KJ_FAIL_SYSCALL("poll", errno);
    if (polled[1].revents != 0) disconnected("the control plane is being closed");
    if (polled[0].revents != 0) return;
    if (milliseconds >= 0) {
      kj::throwFatalException(
          kj::Exception(kj::Exception::Type::OVERLOADED, __FILE__, __LINE__, kj::str("no reply in time")));
    }
  }
}

void ControlChannel::send(capnp::MessageBuilder& message, kj::ArrayPtr<const int> descriptors, Deadline deadline) {
  kj::Array<capnp::word> words = capnp::messageToFlatArray(message);
  kj::ArrayPtr<kj::byte> rest = words.asBytes();
  KJ_REQUIRE(rest.size() <= mostBytes && descriptors.size() <= mostDescriptors, "a control message is too large",
             rest.size(), descriptors.size());
  while (rest.size() > 0) {
    iovec piece{rest.begin(), rest.size()};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    Ancillary room;
    if (descriptors.size() > 0) attach(header, room, descriptors);
    ssize_t sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      rest = rest.slice(static_cast<size_t>(sent), rest.size());
      descriptors = nullptr;  // sent with the first byte
    } else if (errno == EAGAIN) {
      await(POLLOUT, deadline);
    } else if (errno == EPIPE || errno == ECONNRESET) {
      disconnected("the peer has closed the connection");
    } else if (errno != EINTR) {
      KJ_FAIL_SYSCALL("sendmsg", errno);
    }
  }
}

size_t ControlChannel::receiveSome(kj::ArrayPtr<kj::byte> bytes, std::vector<kj::AutoCloseFd>& descriptors,
                                   const Deadline& deadline) {
  while (true) {
    iovec piece{bytes.begin(), bytes.size()};
    Ancillary room;
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = room.bytes;
    header.msg_controllen = sizeof(room.bytes);
    ssize_t received = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (received >= 0) {
      collect(header, descriptors);
      return static_cast<size_t>(received);
    }
    if (errno == EAGAIN) {
      await(POLLIN, deadline);
    } else if (errno == ECONNRESET) {
      return 0;
    } else if (errno != EINTR) {
      KJ_FAIL_SYSCALL("recvmsg", errno);
    }
  }
}

// Returns false if `mayEnd` and the connection ends before the first byte.
bool ControlChannel::fill(kj::ArrayPtr<kj::byte> bytes, std::vector<kj::AutoCloseFd>& descriptors, bool mayEnd,
                          const Deadline& deadline) {
  for (size_t done = 0; done < bytes.size();) {
    size_t received = receiveSome(bytes.slice(done, bytes.size()), descriptors, deadline);
    if (received == 0 && done == 0 && mayEnd) return false;
    if (received == 0) disconnected("the connection ended in the middle of a message");
    done += received;
  }
  return true;
}

std::optional<ControlMessage> ControlChannel::receive(size_t wanted, Deadline deadline) {
  ControlMessage message;
  uint32_t table[mostSegments + 2];
  auto all = kj::arrayPtr(table, mostSegments + 2);
  if (!fill(all.slice(0, 2).asBytes(), message.descriptors, true, deadline)) return std::nullopt;
  KJ_REQUIRE(table[0] < mostSegments, "what arrived is no control message", table[0]);
  size_t tableEntries = (size_t{table[0]} + 3) / 2 * 2;  // the count, the sizes, and a pad to whole words
  fill(all.slice(2, tableEntries).asBytes(), message.descriptors, false, deadline);
  size_t words = bodyWords(all);
  KJ_REQUIRE(words <= mostBytes / sizeof(capnp::word), "a control message that is malformed or too large", words);

  size_t tableWords = tableEntries / 2;
  auto flat = kj::heapArray<capnp::word>(tableWords + words);
  std::memcpy(flat.begin(), table, tableEntries * sizeof(uint32_t));
  fill(flat.slice(tableWords, flat.size()).asBytes(), message.descriptors, false, deadline);
  if (message.descriptors.size() > wanted) message.descriptors.resize(wanted);
  auto reader = kj::heap<capnp::FlatArrayMessageReader>(flat);
  message.reader = reader.attach(kj::mv(flat));
  return message;
}

}  // namespace vgpu
