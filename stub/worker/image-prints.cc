#include "stub/worker/image-prints.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace vgpu::stub {

namespace {

constexpr uint32_t containerMagic = 0xba55ed50;
constexpr uint64_t lz4Flag = 0x2000, zstdFlag = 0x8000;
constexpr uint64_t mostPlainBytes = 256ull << 20;  // what we would unpack to find out

template <typename T>
T read(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool namesPrintf(std::span<const std::byte> bytes) {
  constexpr std::string_view wanted = "vprintf";
  auto isSame = [](std::byte b, char c) { return static_cast<char>(b) == c; };
  return std::search(bytes.begin(), bytes.end(), wanted.begin(), wanted.end(), isSame) != bytes.end();
}

bool memberMayPrint(std::span<const std::byte> payload, uint64_t compressed, uint64_t plain, uint64_t flags) {
  if ((flags & (lz4Flag | zstdFlag)) == 0) return namesPrintf(payload);
  if (plain > mostPlainBytes || compressed > payload.size()) return true;
  std::vector<std::byte> out(plain);
  auto stored = payload.first(compressed);
  if (flags & zstdFlag) {
    size_t done = ZSTD_decompress(out.data(), out.size(), stored.data(), stored.size());
    return ZSTD_isError(done) || namesPrintf(std::span(out).first(done));
  }
  std::vector<char> text(plain);
  std::vector<char> source(stored.size());
  std::memcpy(source.data(), stored.data(), stored.size());
  int done = LZ4_decompress_safe(source.data(), text.data(), static_cast<int>(source.size()), static_cast<int>(text.size()));
  return done < 0 || namesPrintf(std::as_bytes(std::span(text).first(static_cast<size_t>(done))));
}

}  // namespace

bool mayPrint(std::span<const std::byte> image) {
  constexpr uint64_t containerHeader = 16, memberHeader = 64;
  if (image.size() < containerHeader || read<uint32_t>(image, 0) != containerMagic) return namesPrintf(image);
  for (uint64_t at = containerHeader; at + memberHeader <= image.size();) {
    auto header = read<uint32_t>(image, at + 4);
    auto bytes = read<uint64_t>(image, at + 8);
    auto compressed = read<uint32_t>(image, at + 16);
    auto flags = read<uint64_t>(image, at + 40);
    auto plain = read<uint64_t>(image, at + 56);
    if (header < memberHeader || header > image.size() - at || bytes > image.size() - at - header) return true;
    if (memberMayPrint(image.subspan(at + header, bytes), compressed, plain, flags)) return true;
    at += header + bytes;
  }
  return false;
}

}  // namespace vgpu::stub
