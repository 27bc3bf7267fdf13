#include "tools/relay/packed-stream.h"

#include <algorithm>
#include <cstring>

#include "vgpu/base/fail.h"

namespace vgpu::relay {

void PackedStream::begin(std::span<const std::byte> piece) {
  packed = packer.pack(piece);
  sending = {static_cast<uint32_t>(piece.size()), static_cast<uint32_t>(packed.size())};
  if (packed.data() == piece.data()) packed = {};  // not kept: the caller may pass the piece again from another address
  sent = 0;
  sendingSince = LanePacker::Clock::now();
}

// `all` follows the first `from` bytes of what is being sent. Returns whether the connection has taken all of it.
bool PackedStream::put(std::span<const std::byte> all, size_t from) {
  while (sent < from + all.size()) {
    const size_t taken = connection->write(all.subspan(sent - from));
    if (!connection->takesMore()) endWriting(connection->whyEnded());
    if (taken == 0) return false;
    sent += taken;
  }
  return true;
}

size_t PackedStream::write(std::span<const std::byte> bytes) {
  size_t taken = 0;
  while (taken < bytes.size()) {
    const auto left = bytes.subspan(taken);
    if (sending.bytes == 0) begin(left.first(std::min(left.size(), LanePacker::mostBytes)));
    if (sent < sizeof sending && !put(std::as_bytes(std::span(&sending, 1)), 0)) break;
    if (!put(packed.empty() ? left.first(sending.bytes) : packed, sizeof sending)) break;
    packer.noteSent(sending.packed, LanePacker::Clock::now() - sendingSince);
    taken += sending.bytes;
    sending = {};
  }
  return taken;
}

size_t PackedStream::read(std::span<std::byte> room) {
  size_t all = 0;
  while (all < room.size() && bringsMore()) {
    if (!unread.empty()) {
      const size_t bytes = std::min(unread.size(), room.size() - all);
      std::memcpy(room.data() + all, unread.data(), bytes);
      unread = unread.subspan(bytes);
      all += bytes;
      continue;
    }
    if (!takeHead()) break;
    if (arriving.packed < arriving.bytes) {
      if (!takePacked()) break;
      continue;
    }
    const size_t bytes = takePlain(room.subspan(all));
    if (bytes == 0) break;
    all += bytes;
  }
  if (!connection->bringsMore()) endReading(connection->whyEnded());
  return all;
}

// Returns whether the head is complete.
bool PackedStream::takeHead() {
  while (arrivedHead < sizeof arriving) {
    const size_t got = connection->read(std::as_writable_bytes(std::span(&arriving, 1)).subspan(arrivedHead));
    if (got == 0) return false;
    arrivedHead += got;
  }
  const bool fits =
      arriving.bytes > 0 && arriving.bytes <= LanePacker::mostBytes && arriving.packed > 0 && arriving.packed <= arriving.bytes;
  if (!fits) fail("the other side sent a piece with an invalid size");
  return true;
}

size_t PackedStream::takePlain(std::span<std::byte> room) {
  const size_t got = connection->read(room.first(std::min(room.size(), arriving.bytes - arrived)));
  arrived += got;
  if (arrived == arriving.bytes) arrivedHead = arrived = 0;
  return got;
}

// Returns whether the piece is complete.
bool PackedStream::takePacked() {
  const auto from = packer.packedRoom().first(arriving.packed);
  while (arrived < from.size()) {
    const size_t got = connection->read(from.subspan(arrived));
    if (got == 0) return false;
    arrived += got;
  }
  unpacked.resize(LanePacker::mostBytes);
  const auto piece = std::span(unpacked).first(arriving.bytes);
  arrivedHead = arrived = 0;
  if (!LanePacker::unpack(from, piece)) fail("the other side sent a piece that is not an LZ4 block");
  unread = piece;
  return true;
}

}  // namespace vgpu::relay
