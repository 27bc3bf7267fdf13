// Arrays to which the program maps memory: sparse arrays, and arrays of deferred mapping.
#include <algorithm>
#include <bit>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/memory/array.h"
#include "stub/emulator/stream/stream.h"

namespace vgpu::emulator::api {
namespace {

constexpr uint64_t up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }

bool isSparse(const CUDA_ARRAY3D_DESCRIPTOR& shape) { return (shape.Flags & CUDA_ARRAY3D_SPARSE) != 0; }
bool isLayered(const CUDA_ARRAY3D_DESCRIPTOR& shape) { return (shape.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0; }
bool isVolume(const CUDA_ARRAY3D_DESCRIPTOR& shape) { return !isLayered(shape) && shape.Depth != 0; }

// The extent of a tile in units, by the bytes of a unit: x, y, z (docs/facts.md).
std::array<uint64_t, 3> tileOf(uint64_t unitBytes, bool isVolume) {
  const int size = std::countr_zero(unitBytes);  // 0 to 4
  constexpr std::array<uint64_t, 3> flat[] = {{256, 256, 1}, {256, 128, 1}, {128, 128, 1}, {128, 64, 1}, {64, 64, 1}};
  constexpr std::array<uint64_t, 3> deep[] = {{64, 32, 32}, {32, 32, 32}, {32, 32, 16}, {32, 16, 16}, {16, 16, 16}};
  return isVolume ? deep[size] : flat[size];
}

}  // namespace

std::shared_ptr<Tiling> tilingOf(const std::vector<CUDA_ARRAY3D_DESCRIPTOR>& levels) {
  const CUDA_ARRAY3D_DESCRIPTOR& first = levels[0];
  if ((first.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0) return nullptr;
  const ElementFormat unit = findFormat(first.Format)->element(first.NumChannels);
  auto tiling = std::make_shared<Tiling>();
  const auto tile = tileOf(unit.bytes(), isVolume(first));
  if (isSparse(first)) tiling->tile = {tile[0] * unit.side(), tile[1] * unit.side(), tile[2]};
  tiling->layers = isLayered(first) ? first.Depth : 1;
  uint64_t tailBytes = 0;
  bool inTail = false;
  for (const CUDA_ARRAY3D_DESCRIPTOR& shape : levels) {
    auto layout = std::make_shared<TileLayout>();
    layout->unitBytes = unit.bytes();
    layout->units = {up(shape.Width, unit.side()), up(std::max<uint64_t>(shape.Height, 1), unit.side()), std::max<uint64_t>(shape.Depth, 1)};
    layout->readsZeros = isSparse(shape);
    inTail |= !isSparse(shape) || layout->units[0] < tile[0] || layout->units[1] < tile[1] ||
              (isVolume(shape) && layout->units[2] < tile[2]);
    if (inTail) {
      layout->start = tailBytes;
      tailBytes += layout->units[0] * layout->units[1] * (isLayered(shape) ? 1 : layout->units[2]) * layout->unitBytes;
    } else {
      layout->tile = tile;
      layout->memory = std::make_shared<TileMemory>(up(layout->units[0], tile[0]) * up(layout->units[1], tile[1]) * up(layout->units[2], tile[2]));
      ++tiling->firstTailLevel;
    }
    tiling->levels.push_back(std::move(layout));
  }
  tiling->tailTiles = up(tailBytes, tileBytes);
  tiling->isSingleTail = levels.size() == 1 && !isLayered(first) && tiling->tailTiles != 0;
  tiling->tail = std::make_shared<TileMemory>(tiling->tailTiles * tiling->layers);
  for (unsigned i = tiling->firstTailLevel; i < tiling->levels.size(); ++i) {
    tiling->levels[i]->memory = tiling->tail;
    tiling->levels[i]->layerTiles = isLayered(first) ? tiling->tailTiles : 0;
  }
  tiling->hasMemory = isSparse(first);
  return tiling;
}

namespace {

// ---- cuMemMapArrayAsync

// Tiles that get or lose memory.
struct Change {
  std::shared_ptr<TileMemory> of;
  std::vector<uint64_t> tiles;
  std::shared_ptr<Physical> pool;  // nullptr: they lose it
  uint64_t offset = 0;
  std::shared_ptr<Tiling> whole;  // of an array of deferred mapping
};

std::shared_ptr<Tiling> resourceOf(Driver& driver, const CUarrayMapInfo& info) {
  if (info.resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) return driver.mipmappedArrays.get(info.resource.mipmap)->tiling;
  require(info.resourceType == CU_RESOURCE_TYPE_ARRAY);
  std::shared_ptr<Array> array = driver.arrays.get(info.resource.array);
  require(!array->isPart);
  return array->tiling;
}

// A region must begin at the start of a tile, and end at the end of a tile or of the level, not beyond.
void addBox(Change& change, const Tiling& tiling, const CUarrayMapInfo& info) {
  const auto& box = info.subresource.sparseLevel;
  require(box.level < tiling.firstTailLevel);
  const TileLayout& level = *tiling.levels[box.level];
  const bool isVolume = level.tile[2] != 1, isLayered = tiling.layers > 1;
  require(isVolume || (box.offsetZ == 0 && box.extentDepth == 1));
  require(box.layer < tiling.layers && (isLayered || box.layer == 0));
  const uint64_t offset[] = {box.offsetX, box.offsetY, isVolume ? box.offsetZ : box.layer};
  const uint64_t extent[] = {box.extentWidth, box.extentHeight, box.extentDepth};
  std::array<uint64_t, 3> from, to, count;
  for (int axis = 0; axis < 3; ++axis) {
    const uint64_t tile = tiling.tile[axis], side = tile / level.tile[axis];
    count[axis] = up(level.units[axis], level.tile[axis]);
    require(extent[axis] != 0 && offset[axis] % tile == 0 && offset[axis] / tile < count[axis]);
    from[axis] = offset[axis] / tile;
    to[axis] = up(offset[axis] + extent[axis], tile);
    require(to[axis] <= count[axis]);
    const uint64_t end = (offset[axis] + extent[axis]) / side;
    require(end <= level.units[axis] && (extent[axis] % tile == 0 || end + 1 >= level.units[axis]));
  }
  for (uint64_t z = from[2]; z < to[2]; ++z)
    for (uint64_t y = from[1]; y < to[1]; ++y)
      for (uint64_t x = from[0]; x < to[0]; ++x) change.tiles.push_back((z * count[1] + y) * count[0] + x);
  change.of = level.memory;
}

void addTail(Change& change, const Tiling& tiling, const CUarrayMapInfo& info) {
  const auto& tail = info.subresource.miptail;
  require(tail.layer < tiling.layers && tail.size != 0 && tail.offset % tileBytes == 0 && tail.size % tileBytes == 0);
  require(tail.offset / tileBytes < tiling.tailTiles && tail.size / tileBytes <= tiling.tailTiles - tail.offset / tileBytes);
  for (uint64_t i = 0; i < tail.size / tileBytes; ++i)
    change.tiles.push_back(tail.layer * tiling.tailTiles + tail.offset / tileBytes + i);
  change.of = tiling.tail;
}

Change readChange(Context& context, const CUarrayMapInfo& info) {
  Driver& driver = context.driver;
  std::shared_ptr<Tiling> tiling = resourceOf(driver, info);
  require(tiling != nullptr && info.flags == 0 && info.reserved[0] == 0 && info.reserved[1] == 0);
  require(info.memHandleType == CU_MEM_HANDLE_TYPE_GENERIC && info.deviceBitMask == 1u << context.device.ordinal());
  Change change;
  if (tiling->tile[0] == 0) {
    change.of = tiling->tail;
    change.whole = tiling;
    for (uint64_t i = 0; i < tiling->tail->count(); ++i) change.tiles.push_back(i);
  } else if (info.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL) {
    addBox(change, *tiling, info);
  } else {
    require(info.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL);
    addTail(change, *tiling, info);
  }
  if (info.memOperationType == CU_MEM_OPERATION_TYPE_UNMAP) return change;
  require(info.memOperationType == CU_MEM_OPERATION_TYPE_MAP);
  change.pool = driver.physical.get(info.memHandle.memHandle);
  change.offset = info.offset;
  const uint64_t bytes = change.tiles.size() * tileBytes;
  require(change.pool->isTilePool() && &change.pool->device == &context.device && info.offset % tileBytes == 0);
  require(info.offset <= change.pool->bytes && bytes <= change.pool->bytes - info.offset);
  return change;
}

void apply(const Change& change) {
  std::byte* const host = change.pool ? change.pool->tiles()->base() + change.offset : nullptr;
  for (uint64_t i = 0; i < change.tiles.size(); ++i)
    change.of->set(change.tiles[i], host ? host + i * tileBytes : nullptr, change.pool);
}

CUresult sparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* properties, const std::shared_ptr<Tiling>& tiling, bool isLevels) {
  require(properties != nullptr && tiling != nullptr && tiling->tile[0] != 0);
  *properties = {};
  properties->tileExtent = {static_cast<unsigned>(tiling->tile[0]), static_cast<unsigned>(tiling->tile[1]),
                            static_cast<unsigned>(tiling->tile[2])};
  properties->miptailFirstLevel = isLevels ? tiling->firstTailLevel : 0;
  properties->miptailSize = tiling->tailTiles * tileBytes;
  properties->flags = tiling->isSingleTail ? CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL : 0;
  return CUDA_SUCCESS;
}

CUresult memoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* needed, const std::shared_ptr<Tiling>& tiling) {
  require(needed != nullptr && tiling != nullptr && tiling->tile[0] == 0);
  *needed = {};
  needed->size = tiling->tail->count() * tileBytes;
  needed->alignment = tileBytes;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

// If any entry of the list is wrong, nothing is done.
CUresult CUDAAPI cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned count, CUstream handle) {
  return enterContext([&](Context& context) {
    require(list != nullptr && count != 0);
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    stream->refuseCapturing();
    std::vector<Change> changes;
    for (unsigned i = 0; i < count; ++i) changes.push_back(readChange(stream->context, list[i]));
    for (const Change& change : changes)
      if (change.whole) change.whole->hasMemory = change.pool != nullptr;
    stream->submit({.weight = Weight::light, .action = [changes = std::move(changes)] {
                      for (const Change& change : changes) apply(change);
                      return Outcome::finished;
                    }});
  });
}

CUresult CUDAAPI cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* properties, CUarray handle) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Array> array = context.driver.arrays.get(handle);
    require(!array->isPart);
    return sparseProperties(properties, array->tiling, false);
  });
}

CUresult CUDAAPI cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* properties, CUmipmappedArray handle) {
  return enterContext([&](Context& context) {
    return sparseProperties(properties, context.driver.mipmappedArrays.get(handle)->tiling, true);
  });
}

CUresult CUDAAPI cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* needed, CUarray handle, CUdevice device) {
  return enterContext([&](Context& context) {
    context.driver.device(device);
    return memoryRequirements(needed, context.driver.arrays.get(handle)->tiling);
  });
}

CUresult CUDAAPI cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* needed, CUmipmappedArray handle, CUdevice device) {
  return enterContext([&](Context& context) {
    context.driver.device(device);
    return memoryRequirements(needed, context.driver.mipmappedArrays.get(handle)->tiling);
  });
}
