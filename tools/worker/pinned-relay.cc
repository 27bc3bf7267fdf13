#include "tools/worker/pinned-relay.h"

#include <cstring>

#include "tools/common/cross-thread.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {
namespace {

template <typename Element>
capnp::Data::Reader dataOf(std::span<const Element> elements) {
  return {static_cast<const kj::byte*>(static_cast<const void*>(elements.data())), elements.size_bytes()};
}

capnp::Data::Reader dataOf(const DigestKey& key) { return {key.bytes.data(), key.bytes.size()}; }

}  // namespace

PinnedRelay::PinnedRelay(control::PinnedRoom::Client room)
    : client(kj::mv(room)), loop(kj::getCurrentThreadExecutor().addRef()) {}

control::PinnedRoom::Client& PinnedRelay::open() {
  KJ_IF_MAYBE (room, client) return *room;
  fail("cancelled by the caller");
}

std::vector<PinnedPlace> PinnedRelay::place(const DigestKey& key, std::span<const ChunkName> names, bool makesRoom) {
  return callOn(*loop, [&] {
    auto request = open().placeRequest();
    request.setKey(dataOf(key));
    request.setNames(dataOf(names));
    request.setMakesRoom(makesRoom);
    return request.send().then([](capnp::Response<control::PinnedRoom::PlaceResults>&& results) {
      auto data = results.getPlaces();
      std::vector<PinnedPlace> places(data.size() / sizeof(PinnedPlace));
      if (!places.empty()) std::memcpy(places.data(), data.begin(), places.size() * sizeof(PinnedPlace));
      return places;
    });
  });
}

void PinnedRelay::name(const DigestKey& key, std::span<const ChunkName> names, std::span<const uint64_t> offsets) {
  callOn(*loop, [&] {
    auto request = open().nameRequest();
    request.setKey(dataOf(key));
    request.setNames(dataOf(names));
    request.setOffsets(dataOf(offsets));
    return request.send().ignoreResult();
  });
}

std::optional<checkpoint::PinnedRoom> roomIn(std::span<std::byte> memory, std::shared_ptr<PinnedRelay> relay, std::string pool) {
  if (memory.empty() || relay == nullptr) return std::nullopt;
  return checkpoint::PinnedRoom{
      memory, std::move(pool),
      [relay](const DigestKey& key, std::span<const ChunkName> names, bool makesRoom) {
        return relay->place(key, names, makesRoom);
      },
      [relay](const DigestKey& key, std::span<const ChunkName> names, std::span<const uint64_t> offsets) {
        relay->name(key, names, offsets);
      }};
}

}  // namespace vgpu::stub
