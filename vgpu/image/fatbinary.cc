#include "vgpu/image/fatbinary.h"

#include <lz4.h>
#include <zstd.h>

#include <limits>

namespace vgpu::image {

namespace {

constexpr uint64_t containerHeaderBytes = 16, memberHeaderBytes = 64;

// Whether the payload can decompress to the size in its header; checked before memory of that size is allocated.
bool sizeIsPossible(const Member& member) {
  constexpr uint64_t mostLz4Ratio = 255;  // LZ4 block format: one byte of match length stands for up to 255 bytes
  auto& stored = member.payload;
  if ((member.flags & zstd) == 0)
    return stored.size() <= std::numeric_limits<int>::max() && member.plainBytes / mostLz4Ratio <= stored.size();
  auto size = ZSTD_getFrameContentSize(stored.data(), stored.size());
  return size == member.plainBytes || size == ZSTD_CONTENTSIZE_UNKNOWN;
}

}  // namespace

Fatbinary::Fatbinary(Bytes bytes) {
  if (!isFatbinary(bytes) || bytes.size() < containerHeaderBytes) {
    problem_ = "the fatbinary ends within its header";
    return;
  }
  uint64_t headerBytes = read<uint16_t>(bytes, 6), memberBytes = read<uint64_t>(bytes, 8);
  if (headerBytes < containerHeaderBytes || !isInside(headerBytes, memberBytes, bytes.size())) {
    problem_ = "the fatbinary says that it has " + std::to_string(memberBytes) + " bytes, but there are " +
               std::to_string(bytes.size());
    return;
  }
  container_ = bytes.first(headerBytes + memberBytes);
  at_ = headerBytes;
}

std::optional<Member> Fatbinary::next() {
  if (at_ == container_.size() || !problem_.empty()) return std::nullopt;
  Member member;
  problem_ = readMember(member);
  if (!problem_.empty()) return std::nullopt;
  at_ += read<uint32_t>(container_, at_ + 4) + read<uint64_t>(container_, at_ + 8);
  return member;
}

std::string Fatbinary::readMember(Member& member) const {
  Bytes rest = container_.subspan(at_);
  auto wrong = [&](const char* what, uint64_t value, const std::string& why) {
    return std::string(what) + " " + std::to_string(value) + " of the member at byte " + std::to_string(at_) + " " +
           why;
  };
  if (rest.size() < memberHeaderBytes)
    return "the fatbinary ends within the header of the member at byte " + std::to_string(at_);
  auto headerBytes = read<uint32_t>(rest, 4), compressed = read<uint32_t>(rest, 16), options = read<uint32_t>(rest, 20);
  auto name = read<uint32_t>(rest, 32), nameBytes = read<uint32_t>(rest, 36);
  auto payloadBytes = read<uint64_t>(rest, 8);
  if (headerBytes < memberHeaderBytes || headerBytes > rest.size())
    return wrong("the header size", headerBytes, "is impossible");
  if (payloadBytes > rest.size() - headerBytes)
    return wrong("the payload size", payloadBytes, "extends past the end of the fatbinary");
  if (options != 0 && !isInside(options, sizeof(uint64_t), headerBytes))
    return wrong("the options record at", options, "leads out of its header");
  if (!isInside(name, nameBytes, headerBytes)) return wrong("the name at", name, "leads out of its header");
  member = {.at = at_,
            .kind = read<uint16_t>(rest, 0),
            .architecture = read<uint32_t>(rest, 28),
            .flags = read<uint64_t>(rest, 40),
            .payload = rest.subspan(headerBytes, payloadBytes),
            .plainBytes = payloadBytes};
  if (!member.isCompressed()) return {};
  if (compressed > payloadBytes) return wrong("the compressed size", compressed, "is more than its payload");
  member.payload = member.payload.first(compressed);
  member.plainBytes = read<uint64_t>(rest, 56);
  if (member.plainBytes > mostPlainBytes)
    return wrong("the decompressed size", member.plainBytes, "is more than " + std::to_string(mostPlainBytes));
  return {};
}

std::optional<std::string_view> contentOf(const Member& member, std::string& room) {
  if (!member.isCompressed()) return textOf(member.payload);
  if (!sizeIsPossible(member)) return std::nullopt;
  room.resize(member.plainBytes);
  auto stored = textOf(member.payload);
  size_t done = (member.flags & zstd) != 0
                    ? ZSTD_decompress(room.data(), room.size(), stored.data(), stored.size())
                    : static_cast<size_t>(LZ4_decompress_safe(
                          stored.data(), room.data(), static_cast<int>(stored.size()), static_cast<int>(room.size())));
  if (done != room.size()) return std::nullopt;  // also the case if the decompressor failed
  return room;
}

}  // namespace vgpu::image
