#include "tools/common/arrival.h"

#include <kj/debug.h>
#include <sys/socket.h>

namespace vgpu {

void announce(int socket, Bringing what, std::string_view token) {
  std::string words(1, static_cast<char>(what));
  words.append(token);
  ssize_t put;
  KJ_SYSCALL(put = send(socket, words.data(), words.size(), MSG_NOSIGNAL));
  KJ_REQUIRE(static_cast<size_t>(put) == words.size(), "the node does not accept a connection for an arriving session");
}

std::optional<Announcement> readAnnouncement(int socket) {
  char words[1 + arrivalTokenBytes];
  if (recv(socket, words, sizeof words, MSG_DONTWAIT) != static_cast<ssize_t>(sizeof words)) return std::nullopt;
  return Announcement{static_cast<Bringing>(words[0]), {words + 1, arrivalTokenBytes}};
}

}  // namespace vgpu
