#include "stub/emulator/memory/array-format.h"

#include <algorithm>
#include <iterator>

namespace vgpu::emulator::api {
namespace {

using Kind = ElementFormat::Kind;
using Use = ArrayFormat::Use;

constexpr ArrayFormat plain(CUarray_format format, Kind kind, uint8_t bytes) { return {format, Use::plain, kind, bytes, 0}; }
constexpr ArrayFormat fractions(CUarray_format format, Kind kind, uint8_t bytes, uint8_t channels) {
  return {format, Use::normalized, kind, bytes, channels};
}
constexpr ArrayFormat block(CUarray_format format, Kind kind, uint8_t bytes, uint8_t channels, Coding coding, Use use = Use::normalized) {
  return {format, use, kind, bytes, channels, coding};
}
constexpr ArrayFormat video(CUarray_format format, uint8_t bytes, uint8_t channels) {
  return {format, Use::packedVideo, Kind::unsignedInteger, bytes, channels};
}
constexpr ArrayFormat planes(CUarray_format format, uint8_t bytes) { return {format, Use::planes, Kind::unsignedInteger, bytes, 3}; }

constexpr ArrayFormat formats[] = {
    plain(CU_AD_FORMAT_UNSIGNED_INT8, Kind::unsignedInteger, 1),
    plain(CU_AD_FORMAT_SIGNED_INT8, Kind::signedInteger, 1),
    plain(CU_AD_FORMAT_UNSIGNED_INT16, Kind::unsignedInteger, 2),
    plain(CU_AD_FORMAT_SIGNED_INT16, Kind::signedInteger, 2),
    plain(CU_AD_FORMAT_UNSIGNED_INT32, Kind::unsignedInteger, 4),
    plain(CU_AD_FORMAT_SIGNED_INT32, Kind::signedInteger, 4),
    plain(CU_AD_FORMAT_HALF, Kind::floating, 2),
    plain(CU_AD_FORMAT_FLOAT, Kind::floating, 4),
    fractions(CU_AD_FORMAT_UNORM_INT8X1, Kind::unsignedInteger, 1, 1),
    fractions(CU_AD_FORMAT_UNORM_INT8X2, Kind::unsignedInteger, 1, 2),
    fractions(CU_AD_FORMAT_UNORM_INT8X4, Kind::unsignedInteger, 1, 4),
    fractions(CU_AD_FORMAT_UNORM_INT16X1, Kind::unsignedInteger, 2, 1),
    fractions(CU_AD_FORMAT_UNORM_INT16X2, Kind::unsignedInteger, 2, 2),
    fractions(CU_AD_FORMAT_UNORM_INT16X4, Kind::unsignedInteger, 2, 4),
    fractions(CU_AD_FORMAT_SNORM_INT8X1, Kind::signedInteger, 1, 1),
    fractions(CU_AD_FORMAT_SNORM_INT8X2, Kind::signedInteger, 1, 2),
    fractions(CU_AD_FORMAT_SNORM_INT8X4, Kind::signedInteger, 1, 4),
    fractions(CU_AD_FORMAT_SNORM_INT16X1, Kind::signedInteger, 2, 1),
    fractions(CU_AD_FORMAT_SNORM_INT16X2, Kind::signedInteger, 2, 2),
    fractions(CU_AD_FORMAT_SNORM_INT16X4, Kind::signedInteger, 2, 4),
    block(CU_AD_FORMAT_UNORM_INT_101010_2, Kind::unsignedInteger, 2, 4, Coding::tenBits),
    block(CU_AD_FORMAT_BC1_UNORM, Kind::unsignedInteger, 1, 4, Coding::bc1),
    block(CU_AD_FORMAT_BC1_UNORM_SRGB, Kind::unsignedInteger, 1, 4, Coding::bc1, Use::srgb),
    block(CU_AD_FORMAT_BC2_UNORM, Kind::unsignedInteger, 1, 4, Coding::bc2),
    block(CU_AD_FORMAT_BC2_UNORM_SRGB, Kind::unsignedInteger, 1, 4, Coding::bc2, Use::srgb),
    block(CU_AD_FORMAT_BC3_UNORM, Kind::unsignedInteger, 1, 4, Coding::bc3),
    block(CU_AD_FORMAT_BC3_UNORM_SRGB, Kind::unsignedInteger, 1, 4, Coding::bc3, Use::srgb),
    block(CU_AD_FORMAT_BC4_UNORM, Kind::unsignedInteger, 2, 1, Coding::bc4),
    block(CU_AD_FORMAT_BC4_SNORM, Kind::signedInteger, 2, 1, Coding::bc4Signed),
    block(CU_AD_FORMAT_BC5_UNORM, Kind::unsignedInteger, 2, 2, Coding::bc5),
    block(CU_AD_FORMAT_BC5_SNORM, Kind::signedInteger, 2, 2, Coding::bc5Signed),
    block(CU_AD_FORMAT_BC6H_UF16, Kind::floating, 2, 3, Coding::bc6),
    block(CU_AD_FORMAT_BC6H_SF16, Kind::floating, 2, 3, Coding::bc6Signed),
    block(CU_AD_FORMAT_BC7_UNORM, Kind::unsignedInteger, 1, 4, Coding::bc7),
    block(CU_AD_FORMAT_BC7_UNORM_SRGB, Kind::unsignedInteger, 1, 4, Coding::bc7, Use::srgb),
    video(CU_AD_FORMAT_YUY2, 1, 4),
    video(CU_AD_FORMAT_Y210, 2, 2),
    video(CU_AD_FORMAT_Y216, 2, 2),
    video(CU_AD_FORMAT_AYUV, 1, 4),
    video(CU_AD_FORMAT_Y410, 4, 1),
    video(CU_AD_FORMAT_Y416, 2, 4),
    planes(CU_AD_FORMAT_NV12, 1),
    planes(CU_AD_FORMAT_P010, 2),
    planes(CU_AD_FORMAT_P016, 2),
    planes(CU_AD_FORMAT_NV16, 1),
    planes(CU_AD_FORMAT_P210, 2),
    planes(CU_AD_FORMAT_P216, 2),
    planes(CU_AD_FORMAT_Y444_PLANAR8, 1),
    planes(CU_AD_FORMAT_Y444_PLANAR10, 2),
    planes(CU_AD_FORMAT_YUV444_8bit_SemiPlanar, 1),
    planes(CU_AD_FORMAT_YUV444_16bit_SemiPlanar, 2),
};

}  // namespace

ElementFormat ArrayFormat::element(unsigned wanted) const {
  if (coding != Coding::plain) return {kind, channelBytes, 4, coding};
  return {kind, channelBytes, static_cast<uint8_t>(wanted), coding};
}

const ArrayFormat* findFormat(CUarray_format format) {
  const auto* found = std::ranges::find(formats, format, &ArrayFormat::format);
  return found == std::end(formats) ? nullptr : found;
}

std::vector<PlaneFormat> planesOf(CUarray_format format) {
  constexpr PlaneFormat whole{2, 2, 1};
  switch (format) {
    case CU_AD_FORMAT_NV12:
    case CU_AD_FORMAT_P010:
    case CU_AD_FORMAT_P016:
      return {whole, {1, 1, 2}};
    case CU_AD_FORMAT_NV16:
    case CU_AD_FORMAT_P210:
    case CU_AD_FORMAT_P216:
      return {whole, {1, 2, 2}};
    case CU_AD_FORMAT_YUV444_8bit_SemiPlanar:
    case CU_AD_FORMAT_YUV444_16bit_SemiPlanar:
      return {whole, {2, 2, 2}};
    case CU_AD_FORMAT_Y444_PLANAR8:
    case CU_AD_FORMAT_Y444_PLANAR10:
      return {whole, whole, whole};
    default:
      return {};
  }
}

}  // namespace vgpu::emulator::api
