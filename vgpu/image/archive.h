// Iterates over the members of a static library (ar), without its symbol tables. Like elf.h, it owns nothing, throws nothing and never
// reads outside the given bytes.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>

#include "vgpu/image/bytes.h"

namespace vgpu::image {

constexpr std::string_view archiveMagic = "!<arch>\n";

inline bool isArchive(Bytes bytes) { return textOf(bytes).starts_with(archiveMagic); }

class Archive {
 public:
  explicit Archive(Bytes bytes) : rest(bytes.subspan(archiveMagic.size())) {}

  // The content of the next member; nothing after the last one, or if the archive is damaged.
  std::optional<Bytes> next() {
    while (rest.size() >= headerBytes) {
      std::string_view header = textOf(rest.first(headerBytes)), size = header.substr(48, 10);
      uint64_t bytes = 0;
      std::from_chars(size.data(), size.data() + size.size(), bytes);
      if (!header.ends_with("`\n") || bytes > rest.size() - headerBytes) break;
      Bytes content = rest.subspan(headerBytes, bytes);
      rest = rest.subspan(std::min<uint64_t>(rest.size(), headerBytes + bytes + bytes % 2));
      bool isTable = header.starts_with("/ ") || header.starts_with("//") || header.starts_with("/SYM64/");
      if (!isTable) return content;
    }
    rest = {};
    return std::nullopt;
  }

 private:
  static constexpr uint64_t headerBytes = 60;
  Bytes rest;
};

}  // namespace vgpu::image
