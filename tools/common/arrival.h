// The first bytes of each connection to DIR/streams.sock: the arriving session that it belongs to, and what it carries (docs/migration.md).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu {

inline constexpr const char* streamsSocketName = "streams.sock";
constexpr size_t arrivalTokenBytes = 16;

enum class Bringing : char {
  memory = 'm',   // the stream of migrate/chunk-stream.h follows
  program = 'p',  // a relay that acts as the program towards the daemon: messages of control.capnp follow
};

struct Announcement {
  Bringing what;
  std::string token;
};

// Throws kj::Exception if the announcement cannot be written.
void announce(int socket, Bringing what, std::string_view token);
// Does not block: a sender writes it at once. Nothing if it has not arrived.
std::optional<Announcement> readAnnouncement(int socket);

}  // namespace vgpu
