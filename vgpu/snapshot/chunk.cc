#include "vgpu/snapshot/chunk.h"

#include <fmt/format.h>
#include <zstd.h>

#include <bit>
#include <cstring>
#include <string_view>

#include "vgpu/base/fail.h"

namespace vgpu::snapshot {

namespace {

constexpr std::string_view magic = "vgpuchnk";
constexpr size_t headBytes = 16;
static_assert(std::endian::native == std::endian::little);

bool isSound(const ChunkPlace& place, std::span<const uint64_t> packs) {
  if (place.form == Form::zero || place.form == Form::resident)
    return place.bytes == 0 && place.offset == 0 && place.pack == 0;
  if (place.form == Form::stored)
    return packs.empty() && place.bytes == 0 && place.pack == 0 && place.offset > 0 && place.offset <= chunkBytes;
  bool known = place.form == Form::plain || place.form == Form::zstd;
  return known && place.bytes > 0 && place.bytes <= packedMost() && place.pack < packs.size() &&
         place.offset <= packs[place.pack] && place.bytes <= packs[place.pack] - place.offset;
}

}  // namespace

size_t packedMost() { return ZSTD_compressBound(chunkBytes); }

bool isZero(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} && memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::vector<std::byte> encodeChunks(std::span<const ChunkPlace> places) {
  std::vector<std::byte> bytes(headBytes + places.size_bytes());
  uint64_t count = places.size();
  std::memcpy(bytes.data(), magic.data(), magic.size());
  std::memcpy(&bytes[magic.size()], &count, sizeof count);
  if (count > 0) std::memcpy(&bytes[headBytes], places.data(), places.size_bytes());
  return bytes;
}

std::vector<ChunkPlace> decodeChunks(std::span<const std::byte> bytes, std::span<const uint64_t> packs) {
  uint64_t count = 0;
  if (bytes.size() < headBytes || memcmp(bytes.data(), magic.data(), magic.size()) != 0) fail("it is not a list of chunks");
  std::memcpy(&count, &bytes[magic.size()], sizeof count);
  size_t room = bytes.size() - headBytes;
  if (room % sizeof(ChunkPlace) != 0 || count != room / sizeof(ChunkPlace))
    fail(fmt::format("count: a list of {} chunks does not take {} bytes", count, room));
  std::vector<ChunkPlace> places(count);
  if (count > 0) std::memcpy(places.data(), &bytes[headBytes], room);
  for (size_t i = 0; i < places.size(); ++i)
    if (!isSound(places[i], packs)) fail(fmt::format("chunk {}: its position is invalid", i));
  return places;
}

}  // namespace vgpu::snapshot
