#include "stub/emulator/memory/image-view.h"

#include <algorithm>

namespace vgpu::emulator::api {
namespace {

using Kind = ElementFormat::Kind;

// In the order of CUresourceViewFormat, in which each format has one, two and four channels.
constexpr CUarray_format viewedPlain[] = {CU_AD_FORMAT_UNSIGNED_INT8,  CU_AD_FORMAT_SIGNED_INT8,  CU_AD_FORMAT_UNSIGNED_INT16,
                                          CU_AD_FORMAT_SIGNED_INT16,   CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
                                          CU_AD_FORMAT_HALF,           CU_AD_FORMAT_FLOAT};
constexpr CUarray_format viewedBlocks[] = {CU_AD_FORMAT_BC1_UNORM, CU_AD_FORMAT_BC2_UNORM, CU_AD_FORMAT_BC3_UNORM, CU_AD_FORMAT_BC4_UNORM,
                                           CU_AD_FORMAT_BC4_SNORM, CU_AD_FORMAT_BC5_UNORM, CU_AD_FORMAT_BC5_SNORM, CU_AD_FORMAT_BC6H_UF16,
                                           CU_AD_FORMAT_BC6H_SF16, CU_AD_FORMAT_BC7_UNORM};
static_assert(CU_RES_VIEW_FORMAT_UINT_1X8 == 1 && CU_RES_VIEW_FORMAT_FLOAT_4X32 == 3 * std::size(viewedPlain));
static_assert(CU_RES_VIEW_FORMAT_UNSIGNED_BC7 == CU_RES_VIEW_FORMAT_FLOAT_4X32 + std::size(viewedBlocks));

void setFormat(ImageView& image, const ArrayFormat& format, unsigned channels) {
  image.format = format.element(channels);
  image.fractions = format.use != ArrayFormat::Use::plain && format.kind != Kind::floating;
}

ElementFormat formatOf(CUarray_format format, unsigned channels) {
  const ArrayFormat* found = findFormat(format);
  require(found != nullptr && !found->isVideo() && !isBlock(found->coding));
  return found->element(channels);
}

// Applies a view of a block-compressed format: the array consists of integers as wide as a block, and the view's extents are in pixels.
void viewBlocks(ImageView& image, const CUDA_RESOURCE_VIEW_DESC& view) {
  const ArrayFormat& format = *findFormat(viewedBlocks[view.format - CU_RES_VIEW_FORMAT_UNSIGNED_BC1]);
  require(image.format.kind == Kind::unsignedInteger && image.format.channelBytes == 4 &&
          image.format.bytes() == blockBytes(format.coding));
  require(view.width == image.levels[0].width * size_t{4} && view.height == image.levels[0].height * size_t{4});
  setFormat(image, format, format.channels);
  for (ElementGrid& grid : image.levels) grid.width *= 4, grid.height *= 4;
}

void viewPlain(ImageView& image, CUresourceViewFormat wanted) {
  constexpr uint8_t channels[] = {1, 2, 4};
  require(wanted <= CU_RES_VIEW_FORMAT_FLOAT_4X32);
  const unsigned index = wanted - CU_RES_VIEW_FORMAT_UINT_1X8;
  const ArrayFormat& format = *findFormat(viewedPlain[index / 3]);
  require(format.element(channels[index % 3]).bytes() == image.format.bytes());
  setFormat(image, format, channels[index % 3]);
}

ElementGrid gridOf(const Array& array) {
  return {.address = array.address,
          .width = static_cast<uint32_t>(array.descriptor.Width),
          .height = static_cast<uint32_t>(std::max<uint64_t>(array.descriptor.Height, 1)),
          .slices = static_cast<uint32_t>(array.slices),
          .pitch = array.rowBytes,
          .slicePitch = array.rowBytes * array.rows,
          .tiles = array.tiles};
}

void readArray(ImageView& image, const Array& array) {
  require(array.format->use != ArrayFormat::Use::planes);
  setFormat(image, *array.format, array.descriptor.NumChannels);
  image.levels.push_back(gridOf(array));
}

void readTexture(ImageView& image, const Array& array, bool converts) {
  require(!array.format->isVideo() && (array.format->use != ArrayFormat::Use::srgb || converts));
  readArray(image, array);
}

void readResource(ImageView& image, Driver& driver, const CUDA_RESOURCE_DESC& resource, bool converts) {
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return readTexture(image, *driver.arrays.get(resource.res.array.hArray), converts);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      for (const auto& level : driver.mipmappedArrays.get(resource.res.mipmap.hMipmappedArray)->levels)
        readTexture(image, *level, converts);
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

// Restricts the image to the view's levels and layers, read as another format of the same size.
void applyView(ImageView& image, const CUDA_RESOURCE_VIEW_DESC& view) {
  require(!isBlock(image.format.coding) && view.format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7);
  if (view.format >= CU_RES_VIEW_FORMAT_UNSIGNED_BC1)
    viewBlocks(image, view);
  else if (view.format != CU_RES_VIEW_FORMAT_NONE)
    viewPlain(image, view.format);
  require(view.firstMipmapLevel <= view.lastMipmapLevel && view.lastMipmapLevel < image.levels.size());
  image.levels = {image.levels.begin() + view.firstMipmapLevel, image.levels.begin() + view.lastMipmapLevel + 1};
  for (ElementGrid& grid : image.levels) {
    require(view.firstLayer <= view.lastLayer && view.lastLayer < grid.slices);
    if (view.lastLayer == 0) continue;  // also for volumes, which have no layers
    grid.address += view.firstLayer * grid.slicePitch;
    grid.firstSlice = view.firstLayer;
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
  readResource(*image, driver, resource, (texture.flags & CU_TRSF_SRGB) != 0);
  if (view) applyView(*image, *view);
  for (size_t axis = 0; axis < 3; ++axis) image->addressing[axis] = addressingOf(texture.addressMode[axis]);
  std::copy(std::begin(texture.borderColor), std::end(texture.borderColor), image->border.begin());
  const bool floating = image->format.kind == Kind::floating;
  // cuda.h: 32-bit integers are never promoted.
  if (!image->fractions) image->fractions = !floating && !(texture.flags & CU_TRSF_READ_AS_INTEGER) && image->format.channelBytes < 4;
  const bool filters = texture.filterMode == CU_TR_FILTER_MODE_LINEAR;
  require(!filters || floating || image->fractions);
  image->linear = filters && !image->line;  // elements of linear memory are fetched by index, without filtering
  image->normalized = (texture.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  image->srgb = (texture.flags & CU_TRSF_SRGB) && image->fractions && image->format.kind == Kind::unsignedInteger &&
                image->format.channelBytes == 1;
  image->linearMipmap = texture.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
  image->levelBias = texture.mipmapLevelBias;  // cut to 256ths when a level is computed (sampler.cc)
  image->leastLevel = texture.minMipmapLevelClamp;
  image->mostLevel = texture.maxMipmapLevelClamp;
  return image;
}

CUresourceViewFormat viewFormatOf(CUarray_format format, unsigned channels) {
  const auto* const found = std::ranges::find(viewedPlain, format);
  const bool has = found != std::end(viewedPlain) && (channels == 1 || channels == 2 || channels == 4);
  return has ? static_cast<CUresourceViewFormat>(3 * (found - viewedPlain) + channels / 2 + 1) : CU_RES_VIEW_FORMAT_NONE;
}

std::shared_ptr<const ImageView> surfaceOf(const Array& array) {
  require(!isBlock(array.format->coding));
  auto image = std::make_shared<ImageView>();
  readArray(*image, array);
  image->surface = true;
  return image;
}

}  // namespace vgpu::emulator::api
