#include "vgpu/wire/link.h"

#include <kj/debug.h>

#include <algorithm>
#include <cstring>

namespace vgpu {

namespace {

struct Head {
  uint32_t bytes;
  uint16_t type, reserved;
  uint32_t beside, reservedToo;
  uint64_t received;
};
static_assert(sizeof(Head) == 24);

constexpr size_t chunkBytes = 256 * KiB;
constexpr size_t incomingBytes = 2 * MiB;
static_assert(incomingBytes >= 64 * KiB + sizeof(Head) + mostLinkPayload);
// An acknowledgement is sent after so much, so that the peer need not keep what has arrived.
constexpr size_t acknowledgedBytes = 1 * MiB;
constexpr uint64_t acknowledgedMessages = 256;

}  // namespace

Link::Link() : incoming(new std::byte[incomingBytes]) {}

std::span<std::byte> Link::begin(uint16_t type, size_t most) {
  KJ_REQUIRE(most <= mostLinkPayload, "a message is larger than a link allows", most);
  size_t needed = sizeof(Head) + most;
  if (chunks.empty() || chunks.back().size - chunks.back().used < needed) {
    size_t size = std::max(chunkBytes, needed);
    chunks.push_back({std::unique_ptr<std::byte[]>(new std::byte[size]), size, 0, written});
  }
  Chunk& chunk = chunks.back();
  Head head{0, type, 0, 0, 0, receivedCount};
  std::memcpy(&chunk.bytes[chunk.used], &head, sizeof head);
  begun = most;
  begunType = type;
  return {&chunk.bytes[chunk.used + sizeof head], most};
}

void Link::finish(size_t bytes) {
  KJ_REQUIRE(bytes <= begun, "a message has more bytes than were reserved for it", bytes, begun);
  Chunk& chunk = chunks.back();
  auto size = static_cast<uint32_t>(bytes);
  std::memcpy(&chunk.bytes[chunk.used], &size, sizeof size);
  chunk.used += sizeof(Head) + bytes;
  written += sizeof(Head) + bytes;
  ends.push_back(written);
  if (begunType != acknowledgement) needed = forgotten + ends.size();
  if (bytes >= leastBeside) bulk += bytes;
  acknowledged = receivedCount;
  unacknowledgedBytes = 0;
}

void Link::putBeside(uint32_t slab, uint32_t bytes) {
  Chunk& chunk = chunks.back();
  std::memcpy(&chunk.bytes[chunk.used + offsetof(Head, beside)], &bytes, sizeof bytes);
  beside.push_back({forgotten + ends.size() + 1, slab, bytes});
  bulk += bytes;
}

std::optional<Beside> Link::nextBeside() {
  if (!hasMoreBeside()) return std::nullopt;
  return beside[besideGiven++];
}

void Link::arrivedBeside(uint64_t message, uint32_t bytes) {
  KJ_REQUIRE(message > receivedCount, "bytes on a further connection for a message that was received already", message, receivedCount);
  uint32_t& all = arriving[message];
  KJ_REQUIRE(arriving.size() <= mostArriving, "bytes on further connections for too many messages");
  KJ_REQUIRE(bytes <= slabBytes - all, "more bytes on further connections for a message than a slab has", message);
  all += bytes;
}

void Link::send(uint16_t type, std::span<const std::byte> payload) {
  auto room = begin(type, payload.size());
  std::copy(payload.begin(), payload.end(), room.begin());
  finish(payload.size());
}

void Link::acknowledge(bool now) {
  if (now || unacknowledgedBytes >= acknowledgedBytes || receivedCount - acknowledged >= acknowledgedMessages)
    send(acknowledgement, {});
}

std::span<const std::byte> Link::unsent() const {
  for (auto& chunk : chunks)
    if (sentTo < chunk.at + chunk.used) return {&chunk.bytes[sentTo - chunk.at], chunk.at + chunk.used - sentTo};
  return {};
}

std::span<std::byte> Link::space() {
  if (parsed == filled) {
    parsed = filled = 0;
  } else if (incomingBytes - parsed < sizeof(Head) + mostLinkPayload) {
    std::memmove(&incoming[0], &incoming[parsed], filled - parsed);
    filled -= parsed;
    parsed = 0;
  }
  return {&incoming[filled], incomingBytes - filled};
}

std::optional<LinkMessage> Link::next() {
  waitsBeside = false;
  while (filled - parsed >= sizeof(Head)) {
    Head head;
    std::memcpy(&head, &incoming[parsed], sizeof head);
    KJ_REQUIRE(head.bytes <= mostLinkPayload, "a message has an invalid size", head.bytes);
    if (filled - parsed < sizeof head + head.bytes) return std::nullopt;
    if (head.beside != 0) {
      auto found = arriving.find(receivedCount + 1);
      const uint32_t come = found == arriving.end() ? 0 : found->second;
      KJ_REQUIRE(come <= head.beside && head.beside <= slabBytes,
                 "a message with another number of bytes on further connections than it says", come, head.beside);
      waitsBeside = come < head.beside;
      if (waitsBeside) return std::nullopt;
      arriving.erase(found);
      bulk += head.beside;
      unacknowledgedBytes += head.beside;
    }
    forget(head.received);
    LinkMessage message{head.type, {&incoming[parsed + sizeof head], head.bytes}};
    parsed += sizeof head + head.bytes;
    ++receivedCount;
    if (head.type == acknowledgement) {
      if (acknowledged + 1 == receivedCount) acknowledged = receivedCount;  // a lone acknowledgement needs no acknowledgement
      continue;
    }
    unacknowledgedBytes += head.bytes;
    if (head.bytes >= leastBeside) bulk += head.bytes;
    return message;
  }
  return std::nullopt;
}

void Link::forget(uint64_t receivedByPeer) {
  KJ_REQUIRE(receivedByPeer <= forgotten + ends.size(), "the peer acknowledged messages that were never sent", receivedByPeer);
  while (forgotten < receivedByPeer) {
    firstKept = ends.front();
    ends.pop_front();
    ++forgotten;
  }
  for (; !beside.empty() && beside.front().message <= forgotten; beside.pop_front())
    besideGiven -= std::min<size_t>(besideGiven, 1);
  while (chunks.size() > 1 && chunks.front().at + chunks.front().used <= std::min(firstKept, sentTo)) chunks.pop_front();
}

void Link::restart(uint64_t receivedByPeer) {
  KJ_REQUIRE(receivedByPeer >= forgotten, "the peer lacks messages that it has acknowledged", receivedByPeer, forgotten);
  parsed = filled = 0;
  arriving.clear();
  waitsBeside = false;
  forget(receivedByPeer);
  sentTo = firstKept;
  besideGiven = 0;
}

}  // namespace vgpu
