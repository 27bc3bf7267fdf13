#include "stub/emulator/memory/image-view.h"

#include <algorithm>

namespace vgpu::emulator::api {
namespace {

using Kind = ElementFormat::Kind;

struct FormatRow {
  CUarray_format format;
  Kind kind;
  uint8_t bytes;
};
// In the order of CUresourceViewFormat, which has each with one, two and four channels.
constexpr FormatRow formatRows[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, Kind::unsignedInteger, 1},
    {CU_AD_FORMAT_SIGNED_INT8, Kind::signedInteger, 1},
    {CU_AD_FORMAT_UNSIGNED_INT16, Kind::unsignedInteger, 2},
    {CU_AD_FORMAT_SIGNED_INT16, Kind::signedInteger, 2},
    {CU_AD_FORMAT_UNSIGNED_INT32, Kind::unsignedInteger, 4},
    {CU_AD_FORMAT_SIGNED_INT32, Kind::signedInteger, 4},
    {CU_AD_FORMAT_HALF, Kind::floating, 2},
    {CU_AD_FORMAT_FLOAT, Kind::floating, 4},
};
static_assert(CU_RES_VIEW_FORMAT_UINT_1X8 == 1 && CU_RES_VIEW_FORMAT_FLOAT_4X32 == 3 * std::size(formatRows));

ElementFormat formatOf(CUarray_format format, unsigned channels) {
  for (const FormatRow& row : formatRows)
    if (row.format == format) return {row.kind, row.bytes, static_cast<uint8_t>(channels)};
  refuse(CUDA_ERROR_NOT_SUPPORTED);
}

ElementFormat viewedFormat(CUresourceViewFormat format) {
  constexpr uint8_t channels[] = {1, 2, 4};
  if (format > CU_RES_VIEW_FORMAT_FLOAT_4X32) refuse(CUDA_ERROR_NOT_SUPPORTED);  // compressed blocks
  const unsigned index = format - CU_RES_VIEW_FORMAT_UINT_1X8;
  const FormatRow& row = formatRows[index / 3];
  return {row.kind, row.bytes, channels[index % 3]};
}

ElementGrid gridOf(const Array& array) {
  return {.address = array.address,
          .width = static_cast<uint32_t>(array.descriptor.Width),
          .height = static_cast<uint32_t>(array.rows),
          .slices = static_cast<uint32_t>(array.slices),
          .pitch = array.rowBytes,
          .slicePitch = array.rowBytes * array.rows};
}

void readArray(ImageView& image, const Array& array) {
  image.format = formatOf(array.descriptor.Format, array.descriptor.NumChannels);
  image.levels.push_back(gridOf(array));
}

void readResource(ImageView& image, Driver& driver, const CUDA_RESOURCE_DESC& resource) {
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return readArray(image, *driver.arrays.get(resource.res.array.hArray));
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      for (const auto& level : driver.mipmappedArrays.get(resource.res.mipmap.hMipmappedArray)->levels)
        readArray(image, *level);
      return;
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = resource.res.linear;
      image.format = formatOf(linear.format, linear.numChannels);
      image.line = true;
      image.levels.push_back(
          {.address = linear.devPtr,
           .width = static_cast<uint32_t>(std::min<uint64_t>(linear.sizeInBytes / image.format.bytes(), UINT32_MAX))});
      return;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& rows = resource.res.pitch2D;
      image.format = formatOf(rows.format, rows.numChannels);
      image.levels.push_back({.address = rows.devPtr,
                              .width = static_cast<uint32_t>(rows.width),
                              .height = static_cast<uint32_t>(rows.height),
                              .pitch = rows.pitchInBytes});
      return;
    }
  }
  refuse(CUDA_ERROR_INVALID_VALUE);
}

// A part of the levels and layers, read as another format of the same size.
void applyView(ImageView& image, const CUDA_RESOURCE_VIEW_DESC& view) {
  if (view.format != CU_RES_VIEW_FORMAT_NONE) {
    const ElementFormat seen = viewedFormat(view.format);
    require(seen.bytes() == image.format.bytes());
    image.format = seen;
  }
  require(view.firstMipmapLevel <= view.lastMipmapLevel && view.lastMipmapLevel < image.levels.size());
  image.levels = {image.levels.begin() + view.firstMipmapLevel, image.levels.begin() + view.lastMipmapLevel + 1};
  for (ElementGrid& grid : image.levels) {
    require(view.firstLayer <= view.lastLayer && view.lastLayer < grid.slices);
    if (view.lastLayer == 0) continue;  // also of volumes, which have no layers
    grid.address += view.firstLayer * grid.slicePitch;
    grid.slices = view.lastLayer - view.firstLayer + 1;
  }
}

constexpr Addressing addressingOf(CUaddress_mode mode) { return static_cast<Addressing>(mode); }
static_assert(addressingOf(CU_TR_ADDRESS_MODE_WRAP) == Addressing::wrap &&
              addressingOf(CU_TR_ADDRESS_MODE_CLAMP) == Addressing::clamp &&
              addressingOf(CU_TR_ADDRESS_MODE_MIRROR) == Addressing::mirror &&
              addressingOf(CU_TR_ADDRESS_MODE_BORDER) == Addressing::border);

}  // namespace

std::shared_ptr<const ImageView> textureOf(Driver& driver, const CUDA_RESOURCE_DESC& resource,
                                           const CUDA_TEXTURE_DESC& texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  auto image = std::make_shared<ImageView>();
  readResource(*image, driver, resource);
  if (view) applyView(*image, *view);
  for (size_t axis = 0; axis < 3; ++axis) image->addressing[axis] = addressingOf(texture.addressMode[axis]);
  std::copy(std::begin(texture.borderColor), std::end(texture.borderColor), image->border.begin());
  const bool floating = image->format.kind == Kind::floating;
  // cuda.h: whole numbers of 32 bits are never promoted.
  image->fractions = !floating && !(texture.flags & CU_TRSF_READ_AS_INTEGER) && image->format.channelBytes < 4;
  image->linear = texture.filterMode == CU_TR_FILTER_MODE_LINEAR;
  require(!image->linear || ((floating || image->fractions) && !image->line));
  image->normalized = (texture.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  image->srgb = (texture.flags & CU_TRSF_SRGB) && image->fractions && image->format.kind == Kind::unsignedInteger &&
                image->format.channelBytes == 1;
  image->linearMipmap = texture.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
  image->levelBias = texture.mipmapLevelBias;  // what the field can hold
  image->leastLevel = texture.minMipmapLevelClamp;
  image->mostLevel = texture.maxMipmapLevelClamp;
  return image;
}

std::shared_ptr<const ImageView> surfaceOf(const Array& array) {
  auto image = std::make_shared<ImageView>();
  readArray(*image, array);
  image->surface = true;
  return image;
}

}  // namespace vgpu::emulator::api
