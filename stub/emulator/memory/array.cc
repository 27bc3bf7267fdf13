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

}  // namespace

unsigned elementBytes(CUarray_format format, unsigned channels) {
  if (channels != 1 && channels != 2 && channels != 4) return 0;
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4 * channels;
    default:
      return 0;
  }
}

Array::Array(Context& owner, const CUDA_ARRAY3D_DESCRIPTOR& wanted) : context(owner), descriptor(wanted) {
  constexpr unsigned known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                             CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT;
  if (wanted.Flags & ~known) refuse(CUDA_ERROR_NOT_SUPPORTED);
  element = elementBytes(wanted.Format, wanted.NumChannels);
  require(element != 0);
  checkExtent(owner.device, wanted);
  Shape shape = shapeOf(wanted);
  rowBytes = wanted.Width * element;
  rows = shape.rows;
  slices = shape.slices;
  address = owner.driver.pool(owner.device).allocate(bytes(), nullptr);
}

Array::~Array() { context.driver.pool(context.device).free(address); }

MipmappedArray::MipmappedArray(Context& owner, const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned count) : context(owner) {
  require(count != 0);
  CUDA_ARRAY3D_DESCRIPTOR level = wanted;
  bool layered = wanted.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
  auto half = [](size_t& extent) {
    if (extent > 1) extent /= 2;
  };
  for (unsigned i = 0; i < count; ++i) {
    levels.push_back(std::make_shared<Array>(owner, level));
    levels.back()->levelOfMipmap = true;
    // More levels than the largest extent halves are cut off (cuda.h, cuMipmappedArrayCreate).
    if (level.Width <= 1 && level.Height <= 1 && (layered || level.Depth <= 1)) break;
    half(level.Width);
    half(level.Height);
    if (!layered) half(level.Depth);
  }
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

namespace {

CUDA_ARRAY_DESCRIPTOR flat(const CUDA_ARRAY3D_DESCRIPTOR& full) {
  return {.Width = full.Width, .Height = full.Height, .Format = full.Format, .NumChannels = full.NumChannels};
}

// The memory of a destroyed array is that of the work that was issued before, until that is over.
void keepUntilUnused(Context& owner, std::shared_ptr<const void> memory) {
  owner.streams.afterAll([memory = std::move(memory)] { return Outcome::finished; });
}

}  // namespace

CUresult CUDAAPI cuArray3DCreate_v2(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && descriptor != nullptr);
    *handle = context.driver.arrays.add(std::make_shared<Array>(context, *descriptor));
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
    if (array->levelOfMipmap) return;  // it goes with its mipmapped array
    keepUntilUnused(array->context, context.driver.arrays.remove(handle));
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
    context.driver.mipmappedArrays.remove(handle);
    for (const std::shared_ptr<Array>& level : array->levels) context.driver.arrays.remove(level->handle);
    keepUntilUnused(array->context, array);
  });
}

// No array here is sparse, or made without its memory.
CUresult CUDAAPI cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*, CUarray handle) {
  return enterContext([&](Context& context) {
    context.driver.arrays.get(handle);
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUarray handle, CUdevice) {
  return cuArrayGetSparseProperties(nullptr, handle);
}

CUresult CUDAAPI cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*, CUmipmappedArray handle) {
  return enterContext([&](Context& context) {
    context.driver.mipmappedArrays.get(handle);
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUmipmappedArray handle, CUdevice) {
  return cuMipmappedArrayGetSparseProperties(nullptr, handle);
}
