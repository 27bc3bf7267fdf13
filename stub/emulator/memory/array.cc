#include "stub/emulator/memory/array.h"

#include <algorithm>

#include "stub/emulator/driver/driver.h"

namespace vgpu::emulator::api {
namespace {

struct Shape {
  uint64_t rows, slices;
};

Shape shapeOf(const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
  bool layered = wanted.Flags & CUDA_ARRAY3D_LAYERED, cube = wanted.Flags & CUDA_ARRAY3D_CUBEMAP;
  if (cube) require(wanted.Width == wanted.Height && wanted.Depth % 6 == 0 && wanted.Depth != 0);
  if (cube && !layered) require(wanted.Depth == 6);
  if (layered) require(wanted.Depth != 0);
  if (wanted.Depth != 0 && wanted.Height == 0) require(layered);
  return {std::max<uint64_t>(wanted.Height, 1), std::max<uint64_t>(wanted.Depth, 1)};
}

void checkExtent(const Device& device, const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
  auto most = [&](CUdevice_attribute attribute) { return static_cast<uint64_t>(device.attribute(attribute)); };
  require(wanted.Width != 0);
  if (wanted.Flags & CUDA_ARRAY3D_LAYERED) {
    require(wanted.Width <= most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH) &&
            wanted.Height <= most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT) &&
            wanted.Depth <= most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS));
  } else if (wanted.Depth != 0) {
    require(wanted.Width <= most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH) &&
            wanted.Height <= most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT) &&
            wanted.Depth <= most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH));
  } else {
    require(wanted.Width <= most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH) &&
            wanted.Height <= most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT));
  }
}

// Checks the combination of format, shape and flags by the rules of an H100's driver (docs/facts.md).
const ArrayFormat& checkFormat(const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
  const ArrayFormat* format = findFormat(wanted.Format);
  require(format != nullptr && format->allows(wanted.NumChannels));
  const auto has = [&](unsigned flags) { return (wanted.Flags & flags) != 0; };
  constexpr unsigned known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
                             CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
  require(!has(~known));
  require(!has(CUDA_ARRAY3D_SPARSE) || !has(CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_CUBEMAP));
  require(!has(CUDA_ARRAY3D_SPARSE) || wanted.Height != 0);
  if (format->isVideo()) {
    require(has(CUDA_ARRAY3D_VIDEO_ENCODE_DECODE) && !has(~(CUDA_ARRAY3D_VIDEO_ENCODE_DECODE | CUDA_ARRAY3D_SURFACE_LDST)));
    require(wanted.Depth == 0 && wanted.Height != 0 && wanted.Width % 2 == 0 && wanted.Height % 2 == 0);
  }
  if (isBlock(format->coding)) {
    require(wanted.Height != 0);
    if (has(CUDA_ARRAY3D_SURFACE_LDST)) refuse(CUDA_ERROR_NOT_SUPPORTED);
  }
  return *format;
}

std::vector<std::shared_ptr<Array>> makePlanes(Context& owner, const CUDA_ARRAY3D_DESCRIPTOR& whole, const ArrayFormat& format) {
  std::vector<std::shared_ptr<Array>> planes;
  for (const PlaneFormat& plane : planesOf(whole.Format)) {
    CUDA_ARRAY3D_DESCRIPTOR shape = whole;
    shape.Width = whole.Width * plane.width / 2;
    shape.Height = whole.Height * plane.height / 2;
    shape.Format = format.channelBytes == 1 ? CU_AD_FORMAT_UNSIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT16;
    shape.NumChannels = plane.channels;
    planes.push_back(std::make_shared<Array>(owner, shape));
    planes.back()->isPart = true;
  }
  return planes;
}

}  // namespace

unsigned elementBytes(CUarray_format wanted, unsigned channels) {
  const ArrayFormat* format = findFormat(wanted);
  const bool isReadable = format && format->use <= ArrayFormat::Use::normalized && !isBlock(format->coding) && format->allows(channels);
  return isReadable ? format->element(channels).bytes() : 0;
}

Array::Array(Context& owner, const CUDA_ARRAY3D_DESCRIPTOR& wanted, std::shared_ptr<Tiling> given, unsigned level)
    : context(owner), descriptor(wanted), format(&checkFormat(wanted)), tiling(std::move(given)) {
  checkExtent(owner.device, wanted);
  const Shape shape = shapeOf(wanted);
  planes = makePlanes(owner, wanted, *format);
  if (!planes.empty()) return;
  const ElementFormat unit = format->element(wanted.NumChannels);
  const auto units = [&](uint64_t elements) { return (elements + unit.side() - 1) / unit.side(); };
  element = unit.bytes();
  rowBytes = units(wanted.Width) * element;
  rows = units(shape.rows);
  slices = shape.slices;
  if (!tiling) tiling = tilingOf({wanted});
  if (tiling)
    tiles = tiling->levels[level];
  else
    address = owner.driver.pool(owner.device).allocate(bytes(), nullptr);
}

Array::~Array() {
  if (address != 0) context.driver.pool(context.device).free(address);
}

MipmappedArray::MipmappedArray(Context& owner, const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned count) : context(owner) {
  require(count != 0);
  const ArrayFormat* format = findFormat(wanted.Format);
  require(format == nullptr || !format->isVideo());
  CUDA_ARRAY3D_DESCRIPTOR level = wanted;
  bool layered = wanted.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
  auto half = [](size_t& extent) {
    if (extent > 1) extent /= 2;
  };
  std::vector<CUDA_ARRAY3D_DESCRIPTOR> shapes;
  for (unsigned i = 0; i < count; ++i) {
    shapes.push_back(level);
    // Levels beyond those needed to halve the largest extent to 1 are left out (cuda.h, cuMipmappedArrayCreate).
    if (level.Width <= 1 && level.Height <= 1 && (layered || level.Depth <= 1)) break;
    half(level.Width);
    half(level.Height);
    if (!layered) half(level.Depth);
  }
  checkFormat(wanted);
  tiling = tilingOf(shapes);
  for (unsigned i = 0; i < shapes.size(); ++i) {
    levels.push_back(std::make_shared<Array>(owner, shapes[i], tiling, i));
    levels.back()->isPart = true;
  }
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

namespace {

CUDA_ARRAY_DESCRIPTOR flat(const CUDA_ARRAY3D_DESCRIPTOR& full) {
  return {.Width = full.Width, .Height = full.Height, .Format = full.Format, .NumChannels = full.NumChannels};
}

}  // namespace

CUresult CUDAAPI cuArray3DCreate_v2(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && descriptor != nullptr);
    auto made = std::make_shared<Array>(context, *descriptor);
    for (const std::shared_ptr<Array>& plane : made->planes) context.driver.arrays.add(plane);
    *handle = context.driver.arrays.add(made);
  });
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR full{.Width = descriptor->Width,
                               .Height = descriptor->Height,
                               .Depth = 0,
                               .Format = descriptor->Format,
                               .NumChannels = descriptor->NumChannels,
                               .Flags = 0};
  return cuArray3DCreate_v2(handle, &full);
}

CUresult CUDAAPI cuArrayDestroy(CUarray handle) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Array> array = context.driver.arrays.get(handle);
    if (array->isPart) return;  // it ends with the whole
    array->context.streams.waitForAll();  // as on hardware
    for (const std::shared_ptr<Array>& plane : array->planes) context.driver.arrays.remove(plane->handle);
    context.driver.arrays.remove(handle);
  });
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray handle) {
  return enterContext([&](Context& context) {
    require(descriptor != nullptr);
    *descriptor = context.driver.arrays.get(handle)->descriptor;
  });
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray handle) {
  return enterContext([&](Context& context) {
    require(descriptor != nullptr);
    *descriptor = flat(context.driver.arrays.get(handle)->descriptor);
  });
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                                        unsigned levels) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && descriptor != nullptr);
    auto made = std::make_shared<MipmappedArray>(context, *descriptor, levels);
    for (const std::shared_ptr<Array>& level : made->levels) context.driver.arrays.add(level);
    *handle = context.driver.mipmappedArrays.add(made);
  });
}

CUresult CUDAAPI cuMipmappedArrayGetLevel(CUarray* level, CUmipmappedArray handle, unsigned index) {
  return enterContext([&](Context& context) {
    std::shared_ptr<MipmappedArray> array = context.driver.mipmappedArrays.get(handle);
    require(level != nullptr && index < array->levels.size());
    *level = array->levels[index]->handle;
  });
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  return enterContext([&](Context& context) {
    std::shared_ptr<MipmappedArray> array = context.driver.mipmappedArrays.get(handle);
    array->context.streams.waitForAll();  // as on hardware
    context.driver.mipmappedArrays.remove(handle);
    for (const std::shared_ptr<Array>& level : array->levels) context.driver.arrays.remove(level->handle);
  });
}

CUresult CUDAAPI cuArrayGetPlane(CUarray* plane, CUarray handle, unsigned index) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Array> array = context.driver.arrays.get(handle);
    require(plane != nullptr && index < array->planes.size());
    *plane = array->planes[index]->handle;
  });
}
