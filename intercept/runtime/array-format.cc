#include "intercept/runtime/array-format.h"

#include <algorithm>
#include <iterator>

namespace vgpu::runtime {
namespace {

struct Row {
  CUarray_format format;
  cudaChannelFormatKind kind;
  int bits[4];        // bits of each channel if the kind fixes their number; else bits[0] is the width of every channel
  unsigned channels;  // 0: as many as the description has channels
  size_t bytes;       // of a channel when `channels` is 0, else of an element or block
};

#define PLAIN(format, kind, bits) \
  { CU_AD_FORMAT_##format, cudaChannelFormatKind##kind, {bits}, 0, bits / 8 }
#define FIXED(format, kind, x, y, z, w, channels, bytes) \
  { CU_AD_FORMAT_##format, cudaChannelFormatKind##kind, {x, y, z, w}, channels, bytes }
constexpr Row rows[] = {
    PLAIN(UNSIGNED_INT8, Unsigned, 8),
    PLAIN(UNSIGNED_INT16, Unsigned, 16),
    PLAIN(UNSIGNED_INT32, Unsigned, 32),
    PLAIN(SIGNED_INT8, Signed, 8),
    PLAIN(SIGNED_INT16, Signed, 16),
    PLAIN(SIGNED_INT32, Signed, 32),
    PLAIN(HALF, Float, 16),
    PLAIN(FLOAT, Float, 32),
    FIXED(UNORM_INT8X1, UnsignedNormalized8X1, 8, 0, 0, 0, 1, 1),
    FIXED(UNORM_INT8X2, UnsignedNormalized8X2, 8, 8, 0, 0, 2, 2),
    FIXED(UNORM_INT8X4, UnsignedNormalized8X4, 8, 8, 8, 8, 4, 4),
    FIXED(UNORM_INT16X1, UnsignedNormalized16X1, 16, 0, 0, 0, 1, 2),
    FIXED(UNORM_INT16X2, UnsignedNormalized16X2, 16, 16, 0, 0, 2, 4),
    FIXED(UNORM_INT16X4, UnsignedNormalized16X4, 16, 16, 16, 16, 4, 8),
    FIXED(SNORM_INT8X1, SignedNormalized8X1, 8, 0, 0, 0, 1, 1),
    FIXED(SNORM_INT8X2, SignedNormalized8X2, 8, 8, 0, 0, 2, 2),
    FIXED(SNORM_INT8X4, SignedNormalized8X4, 8, 8, 8, 8, 4, 4),
    FIXED(SNORM_INT16X1, SignedNormalized16X1, 16, 0, 0, 0, 1, 2),
    FIXED(SNORM_INT16X2, SignedNormalized16X2, 16, 16, 0, 0, 2, 4),
    FIXED(SNORM_INT16X4, SignedNormalized16X4, 16, 16, 16, 16, 4, 8),
    FIXED(BC1_UNORM, UnsignedBlockCompressed1, 8, 8, 8, 8, 4, 8),
    FIXED(BC1_UNORM_SRGB, UnsignedBlockCompressed1SRGB, 8, 8, 8, 8, 4, 8),
    FIXED(BC2_UNORM, UnsignedBlockCompressed2, 8, 8, 8, 8, 4, 16),
    FIXED(BC2_UNORM_SRGB, UnsignedBlockCompressed2SRGB, 8, 8, 8, 8, 4, 16),
    FIXED(BC3_UNORM, UnsignedBlockCompressed3, 8, 8, 8, 8, 4, 16),
    FIXED(BC3_UNORM_SRGB, UnsignedBlockCompressed3SRGB, 8, 8, 8, 8, 4, 16),
    FIXED(BC4_UNORM, UnsignedBlockCompressed4, 8, 0, 0, 0, 1, 8),
    FIXED(BC4_SNORM, SignedBlockCompressed4, 8, 0, 0, 0, 1, 8),
    FIXED(BC5_UNORM, UnsignedBlockCompressed5, 8, 8, 0, 0, 2, 16),
    FIXED(BC5_SNORM, SignedBlockCompressed5, 8, 8, 0, 0, 2, 16),
    FIXED(BC6H_UF16, UnsignedBlockCompressed6H, 16, 16, 16, 0, 3, 16),
    FIXED(BC6H_SF16, SignedBlockCompressed6H, 16, 16, 16, 0, 3, 16),
    FIXED(BC7_UNORM, UnsignedBlockCompressed7, 8, 8, 8, 8, 4, 16),
    FIXED(BC7_UNORM_SRGB, UnsignedBlockCompressed7SRGB, 8, 8, 8, 8, 4, 16),
    FIXED(UNORM_INT_101010_2, UnsignedNormalized1010102, 10, 10, 10, 2, 4, 4),
    FIXED(NV12, NV12, 8, 8, 8, 0, 3, 1),
};
#undef PLAIN
#undef FIXED

/// 1, 2 or 4 if the description's first 1, 2 or 4 channels have one width and the others have width 0; else 0.
unsigned channelsOf(const cudaChannelFormatDesc& d) {
  int bits[] = {d.x, d.y, d.z, d.w};
  unsigned count = 0;
  while (count < 4 && bits[count] != 0) ++count;
  for (unsigned i = 0; i < 4; ++i)
    if (bits[i] != (i < count ? d.x : 0)) return 0;
  return count == 3 ? 0 : count;
}

}  // namespace

std::optional<ElementFormat> toDriver(const cudaChannelFormatDesc& d) {
  for (const Row& row : rows) {
    if (row.kind != d.f) continue;
    if (row.channels != 0) {
      bool sameBits = row.bits[0] == d.x && row.bits[1] == d.y && row.bits[2] == d.z && row.bits[3] == d.w;
      return sameBits ? std::optional(ElementFormat{row.format, row.channels}) : std::nullopt;
    }
    unsigned channels = channelsOf(d);
    if (row.bits[0] == d.x && channels != 0) return ElementFormat{row.format, channels};
  }
  return std::nullopt;
}

std::optional<cudaChannelFormatDesc> toRuntime(const ElementFormat& format) {
  auto row = std::ranges::find(rows, format.format, &Row::format);
  if (row == std::end(rows)) return std::nullopt;
  if (row->channels != 0)
    return cudaChannelFormatDesc{row->bits[0], row->bits[1], row->bits[2], row->bits[3], row->kind};
  auto bits = [&](unsigned channel) { return channel < format.channels ? row->bits[0] : 0; };
  return cudaChannelFormatDesc{bits(0), bits(1), bits(2), bits(3), row->kind};
}

size_t bytesOf(const ElementFormat& format) {
  auto row = std::ranges::find(rows, format.format, &Row::format);
  if (row == std::end(rows)) return 1;
  return row->channels != 0 ? row->bytes : row->bytes * format.channels;
}

}  // namespace vgpu::runtime
