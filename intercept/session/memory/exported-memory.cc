#include "intercept/session/memory/exported-memory.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace vgpu::client {

namespace {

struct Content {
  ExportedMemory::What what;
  SharedName name;
};

}  // namespace

std::optional<ExportedMemory> ExportedMemory::make(int& descriptor, What what, const SharedName& name) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  ExportedMemory made(ends[0]);
  const Content content{what, name};
  if (send(ends[0], &content, sizeof content, MSG_NOSIGNAL) != sizeof content) return close(ends[1]), std::nullopt;
  descriptor = ends[1];
  return made;
}

std::optional<SharedName> ExportedMemory::nameIn(int descriptor, What what) {
  Content content{};
  if (recv(descriptor, &content, sizeof content, MSG_PEEK | MSG_DONTWAIT) != sizeof content) return std::nullopt;
  return content.what == what ? std::optional(content.name) : std::nullopt;
}

ExportedMemory::~ExportedMemory() {
  if (ours >= 0) close(ours);
}

bool ExportedMemory::isOpen() const {
  pollfd end{ours, POLLIN, 0};
  return poll(&end, 1, 0) == 0 || (end.revents & POLLHUP) == 0;
}

}  // namespace vgpu::client
