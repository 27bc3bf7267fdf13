#include "vgpu/image/function-starts.h"

#include <algorithm>
#include <ranges>

namespace vgpu::image {
namespace {

struct Header {
  uint8_t version, frameEncoding, countEncoding, rowEncoding;
  int32_t frame;
  uint32_t count;
};
constexpr uint8_t relativeToPlace = 0x1b, unsigned4 = 0x03, relativeToTable = 0x3b;  // DW_EH_PE_*, encodings of four bytes

}  // namespace

FunctionStarts::FunctionStarts(const Elf& file) {
  for (const auto& segment : file.segments()) {
    if (segment.p_type != PT_GNU_EH_FRAME) continue;
    const Bytes bytes = file.bytesOf(segment);
    if (bytes.size() < sizeof(Header)) return;
    const auto header = read<Header>(bytes, 0);
    if (header.version != 1 || header.frameEncoding != relativeToPlace || header.countEncoding != unsigned4 ||
        header.rowEncoding != relativeToTable || header.count > (bytes.size() - sizeof(Header)) / sizeof(Row))
      return;
    base = segment.p_vaddr;
    rows = Table<Row>(bytes.subspan(sizeof(Header), header.count * sizeof(Row)));
    return;
  }
}

std::optional<size_t> FunctionStarts::find(uint64_t address) const {
  const size_t behind = *std::ranges::upper_bound(std::views::iota(size_t{0}, size()), address, {},
                                                  [this](size_t index) { return (*this)[index]; });
  if (behind == 0) return std::nullopt;
  return behind - 1;
}

}  // namespace vgpu::image
