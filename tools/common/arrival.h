// The first bytes of each connection with DIR/streams.sock: of which session on its way to that node it is, and what it brings
// (docs/migration.md).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu {

inline constexpr const char* streamsSocketName = "streams.sock";
constexpr size_t arrivalTokenBytes = 16;

enum class Bringing : char {
  memory = 'm',   // migrate/chunk-stream.h follows
  program = 'p',  // a relay, which is the program to the daemon: messages of control.capnp follow
};

struct Announcement {
  Bringing what;
  std::string token;
};

// Throws kj::Exception if it cannot be written.
void announce(int socket, Bringing what, std::string_view token);
// Does not wait: a sender writes it at once. Nothing if it has not come.
std::optional<Announcement> readAnnouncement(int socket);

}  // namespace vgpu
