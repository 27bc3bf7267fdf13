#include "stub/worker/tile-state.h"

#include <algorithm>

#include "stub/worker/array-bytes.h"

namespace vgpu::stub {

namespace {

constexpr uint64_t tileBytes = 64 * KiB;  // for every format on every device seen (docs/facts.md)

constexpr uint64_t up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }

bool isMipmap(const CUarrayMapInfo& info) { return info.resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY; }
bool isMap(const CUarrayMapInfo& info) { return info.memOperationType == CU_MEM_OPERATION_TYPE_MAP; }
bool isTail(const CUarrayMapInfo& info) { return info.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL; }
uint64_t resourceOf(const CUarrayMapInfo& info) {
  return isMipmap(info) ? toWire(info.resource.mipmap) : toWire(info.resource.array);
}
api::Kind kindOf(const CUarrayMapInfo& info) { return isMipmap(info) ? api::Kind::MIPMAPPED_ARRAY : api::Kind::ARRAY; }

// A box of tiles: for z, y and x the first tile and the one after the last.
struct Tiles {
  uint32_t type = 0, layer = 0, level = 0;
  std::array<uint64_t, 3> first{}, end{1, 1, 1};

  unsigned __int128 count() const {
    unsigned __int128 product = 1;
    for (int axis = 0; axis < 3; ++axis) product *= end[axis] - first[axis];
    return product;
  }
  bool holds(const std::array<uint32_t, 6>& tile) const {
    if (tile[0] != type || tile[1] != layer || tile[2] != level) return false;
    for (int axis = 0; axis < 3; ++axis)
      if (tile[3 + axis] < first[axis] || tile[3 + axis] >= end[axis]) return false;
    return true;
  }
};

Tiles tilesOf(const CUarrayMapInfo& info, const std::array<uint32_t, 3>& tile) {
  if (tile[0] == 0) return {};
  if (isTail(info)) {
    auto& tail = info.subresource.miptail;
    Tiles tiles{1, tail.layer, 0};
    tiles.first[2] = tail.offset / tileBytes;
    tiles.end[2] = tiles.first[2] + up(std::min<uint64_t>(tail.size, UINT32_MAX), tileBytes);
    return tiles;
  }
  auto& box = info.subresource.sparseLevel;
  const uint64_t offset[] = {box.offsetZ, box.offsetY, box.offsetX};
  const uint64_t extent[] = {box.extentDepth, box.extentHeight, box.extentWidth};
  Tiles tiles{0, box.layer, box.level};
  for (int axis = 0; axis < 3; ++axis) {
    tiles.first[axis] = offset[axis] / tile[axis];
    tiles.end[axis] = up(offset[axis] + extent[axis], tile[axis]);
  }
  return tiles;
}

}  // namespace

// A sparse array whose tiles are mapped to one piece of a pool, row after row.
class TileState::Window {
 public:
  static constexpr uint64_t bytes = 2 * MiB;
  explicit Window(Execution& on) : driver(on.driver) {
    CUDA_ARRAY3D_DESCRIPTOR shape{width, side, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE};
    require(driver, driver.cuArray3DCreate_v2(&array, &shape), "creating an array to read the memory of tiles");
    CUDA_ARRAY_SPARSE_PROPERTIES properties{};
    require(driver, driver.cuArrayGetSparseProperties(&properties, array), "querying the tiles of an array");
    KJ_REQUIRE(properties.tileExtent.width == side && properties.tileExtent.height == side, "tiles have another shape");
  }
  CUresult end() { return driver.cuArrayDestroy(array); }

  // Calls copy(array, info) with the array mapped to the bytes [piece, piece + bytes) of a pool.
  template <typename Copy>
  void at(Execution& on, CUmemGenericAllocationHandle memory, uint64_t piece, Copy copy) {
    map(on, memory, piece);
    copy(array, ArrayInfo{.rowBytes = width * 4, .rows = side, .slices = 1});
    map(on, 0, 0);
  }

 private:
  static constexpr uint32_t side = 128, width = bytes / side / 4;

  void map(Execution& on, CUmemGenericAllocationHandle memory, uint64_t piece) {
    std::array<CUarrayMapInfo, width / side> tiles{};
    for (uint32_t i = 0; i < tiles.size(); ++i) {
      tiles[i].resource.array = array;
      tiles[i].subresource.sparseLevel = {0, 0, i * side, 0, 0, side, side, 1};
      tiles[i].memOperationType = memory != 0 ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
      tiles[i].memHandle.memHandle = memory;
      tiles[i].offset = memory != 0 ? piece + i * tileBytes : 0;
      tiles[i].deviceBitMask = 1u << driver.device(on.device());
    }
    require(driver, driver.cuMemMapArrayAsync(tiles.data(), tiles.size(), on.gpu.progress.ownStream()), "mapping the memory of tiles");
  }

  const Driver& driver;
  CUarray array = nullptr;
};

TileState::TileState() = default;
TileState::~TileState() = default;

// ------------------------------------------------------------------ operations

CUresult TileState::describe(Execution& on, const CUarrayMapInfo& real, Resource& resource) {
  CUDA_ARRAY_SPARSE_PROPERTIES tiles{};
  CUDA_ARRAY_MEMORY_REQUIREMENTS needed{};
  const Driver& driver = on.driver;
  if ((isMipmap(real) ? driver.cuMipmappedArrayGetSparseProperties(&tiles, real.resource.mipmap)
                      : driver.cuArrayGetSparseProperties(&tiles, real.resource.array)) == CUDA_SUCCESS) {
    resource.tile = {tiles.tileExtent.depth, tiles.tileExtent.height, tiles.tileExtent.width};
    resource.wholeBytes = 0;
    return CUDA_SUCCESS;
  }
  const CUdevice device = driver.device(on.device());
  CUresult result = isMipmap(real) ? driver.cuMipmappedArrayGetMemoryRequirements(&needed, real.resource.mipmap, device)
                                   : driver.cuArrayGetMemoryRequirements(&needed, real.resource.array, device);
  resource.wholeBytes = needed.size;
  return result;
}

CUresult TileState::executeOne(Execution& on, CUstream stream, const CUarrayMapInfo& wanted, CUarrayMapInfo& real) {
  const uint64_t handle = resourceOf(wanted), memory = wanted.memHandle.memHandle;
  if (wanted.resourceType > CU_RESOURCE_TYPE_MIPMAPPED_ARRAY || handleDevice(handle) != on.device() ||
      wanted.deviceBitMask != 1u << on.device())
    return CUDA_ERROR_INVALID_VALUE;
  Resource resource;
  if (CUresult bad = describe(on, real, resource)) return bad;
  real.deviceBitMask = 1u << on.driver.device(on.device());
  if (isMap(wanted)) {
    auto pool = on.session.physical.find(memory);
    if (!pool || handleDevice(memory) != on.device()) return CUDA_ERROR_INVALID_VALUE;
    const unsigned __int128 bytes =
        resource.wholeBytes != 0 ? resource.wholeBytes : tilesOf(wanted, resource.tile).count() * tileBytes;
    if (wanted.offset > pool->bytes || bytes > pool->bytes - wanted.offset) return CUDA_ERROR_INVALID_VALUE;
    real.memHandle.memHandle = pool->real;
  } else {
    real.memHandle.memHandle = 0;  // the driver ignores it
  }
  if (CUresult error = on.driver.cuMemMapArrayAsync(&real, 1, stream)) return error;
  record(handle, std::move(resource), wanted);
  return CUDA_SUCCESS;
}

CUresult TileState::execute(Execution& on, CUstream stream, std::span<const CUarrayMapInfo> wanted, std::span<CUarrayMapInfo> real) {
  for (size_t i = 0; i < wanted.size(); ++i)
    if (CUresult error = executeOne(on, stream, wanted[i], real[i])) return error;
  return CUDA_SUCCESS;
}

void TileState::release(uint64_t number) {
  auto found = operations.find(number);
  if (--found->second.tiles == 0) operations.erase(found);
}

// An operation is kept as long as it is the last on some tile; a resource without memory on any tile is not kept.
void TileState::record(uint64_t handle, Resource described, const CUarrayMapInfo& wanted) {
  std::lock_guard lock(mutex);
  Resource& resource = resources.try_emplace(handle, std::move(described)).first->second;
  const uint64_t number = next++;
  const Tiles tiles = tilesOf(wanted, resource.tile);
  Operation& operation = operations.emplace(number, Operation{wanted, 1}).first->second;  // 1: until all tiles are counted
  auto take = [&](uint64_t& owner) {
    if (owner != 0 && isMap(operations.at(owner).info)) --resource.mapped;
    if (owner != 0) release(owner);
    owner = number;
    ++operation.tiles;
    resource.mapped += isMap(wanted);
  };
  if (isMap(wanted)) {
    for (uint64_t z = tiles.first[0]; z < tiles.end[0]; ++z)
      for (uint64_t y = tiles.first[1]; y < tiles.end[1]; ++y)
        for (uint64_t x = tiles.first[2]; x < tiles.end[2]; ++x)
          take(resource.tiles[{tiles.type, tiles.layer, tiles.level, static_cast<uint32_t>(z), static_cast<uint32_t>(y),
                               static_cast<uint32_t>(x)}]);
  } else {
    for (auto& [tile, owner] : resource.tiles)
      if (tiles.holds(tile)) take(owner);
  }
  release(number);
  if (resource.mapped != 0) return;
  for (auto& [tile, owner] : resource.tiles) release(owner);
  resources.erase(handle);
}

void TileState::forget(uint64_t handle) {
  std::lock_guard lock(mutex);
  auto found = resources.find(handle);
  if (found == resources.end()) return;
  for (auto& [tile, owner] : found->second.tiles) release(owner);
  resources.erase(found);
}

bool TileState::uses(uint64_t physical) const {
  std::lock_guard lock(mutex);
  return std::ranges::any_of(operations, [&](auto& each) {
    return isMap(each.second.info) && each.second.info.memHandle.memHandle == physical;
  });
}

void TileState::drop(unsigned device) {
  std::vector<uint64_t> ended;
  {
    std::lock_guard lock(mutex);
    for (auto& [handle, resource] : resources)
      if (handleDevice(handle) == device) ended.push_back(handle);
  }
  for (uint64_t handle : ended) forget(handle);
  windows[device].reset();
}

CUresult TileState::endDevice(Execution& on) {
  auto& window = windows[on.device()];
  CUresult result = window != nullptr ? window->end() : CUDA_SUCCESS;
  drop(on.device());
  return result;
}

// ------------------------------------------------------------------ snapshots

// A row: resource, memory, offset in it, the operation, whether it is a mip tail, and then level, layer, offset and extent of the tiles;
// for a mip tail layer, offset and size.
Rows TileState::rows() const {
  std::lock_guard lock(mutex);
  Rows rows;
  for (auto& [number, operation] : operations) {
    const CUarrayMapInfo& info = operation.info;
    auto& box = info.subresource.sparseLevel;
    auto& tail = info.subresource.miptail;
    Row row{resourceOf(info), uint64_t{info.memHandle.memHandle}, uint64_t{info.offset},
            static_cast<uint64_t>(info.memOperationType), uint64_t{isTail(info)}};
    if (isTail(info))
      for (uint64_t value : {uint64_t{tail.layer}, uint64_t{tail.offset}, uint64_t{tail.size}, uint64_t{0}, uint64_t{0}, uint64_t{0},
                             uint64_t{0}, uint64_t{0}})
        row.push_back(value);
    else
      for (uint64_t value : {box.level, box.layer, box.offsetX, box.offsetY, box.offsetZ, box.extentWidth, box.extentHeight,
                             box.extentDepth})
        row.push_back(value);
    rows.push_back(std::move(row));
  }
  return rows;
}

bool TileState::isValid(const Row& row, uint64_t devices) {
  const unsigned kind = handleKind(numberIn(row, 0));
  const uint64_t operation = numberIn(row, 3);
  if (kind != static_cast<unsigned>(api::Kind::ARRAY) && kind != static_cast<unsigned>(api::Kind::MIPMAPPED_ARRAY)) return false;
  for (size_t i = 5; i < row.size(); ++i)
    if (numberIn(row, i) > UINT32_MAX) return false;
  return deviceOf(row) < devices && numberIn(row, 4) <= 1 &&
         (operation == CU_MEM_OPERATION_TYPE_MAP || operation == CU_MEM_OPERATION_TYPE_UNMAP);
}

unsigned TileState::deviceOf(const Row& row) { return handleDevice(numberIn(row, 0)); }

void TileState::restore(Execution& on, const Row& row) {
  CUarrayMapInfo info{};
  auto number = [&](size_t column) { return static_cast<unsigned>(numberIn(row, column)); };
  const uint64_t handle = numberIn(row, 0);
  const bool isOfLevels = handleKind(handle) == static_cast<unsigned>(api::Kind::MIPMAPPED_ARRAY);
  info.resourceType = isOfLevels ? CU_RESOURCE_TYPE_MIPMAPPED_ARRAY : CU_RESOURCE_TYPE_ARRAY;
  info.memHandle.memHandle = numberIn(row, 1);
  info.offset = numberIn(row, 2);
  info.memOperationType = static_cast<CUmemOperationType>(numberIn(row, 3));
  info.deviceBitMask = 1u << on.device();
  if (numberIn(row, 4) != 0) {
    info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
    info.subresource.miptail = {number(5), numberIn(row, 6), numberIn(row, 7)};
  } else {
    info.subresource.sparseLevel = {number(5), number(6), number(7), number(8), number(9), number(10), number(11), number(12)};
  }
  CUarrayMapInfo real = info;
  auto set = [&](CUarrayMapInfo& to, uint64_t value) {
    isOfLevels ? void(to.resource.mipmap = fromWire<CUmipmappedArray>(value)) : void(to.resource.array = fromWire<CUarray>(value));
  };
  set(info, handle);
  set(real, on.handles.get(kindOf(info), handle));
  require(on.driver, executeOne(on, on.gpu.progress.ownStream(), info, real), "mapping memory to an array again");
}

// ------------------------------------------------------------------ bytes

TileState::Window& TileState::windowOf(Execution& on) {
  auto& window = windows[on.device()];
  if (window == nullptr) window = std::make_unique<Window>(on);
  return *window;
}

template <typename Copy>
void TileState::forPieces(Execution& on, uint64_t physical, uint64_t offset, uint64_t bytes, Copy copy) {
  auto pool = on.session.physical.find(physical);
  KJ_REQUIRE(pool.has_value() && offset <= pool->bytes && bytes <= pool->bytes - offset, "bytes past the end of a tile pool", physical);
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t at = offset + done, within = at % Window::bytes, part = std::min(bytes - done, Window::bytes - within);
    windowOf(on).at(on, pool->real, at - within,
                    [&](CUarray array, const ArrayInfo& info) { copy(array, info, within, done, part); });
    done += part;
  }
}

void TileState::read(Execution& on, uint64_t physical, uint64_t offset, std::byte* out, size_t bytes) {
  forPieces(on, physical, offset, bytes, [&](CUarray array, const ArrayInfo& info, uint64_t within, uint64_t done, uint64_t part) {
    readArray(on, array, info, within, out + done, part);
  });
}

void TileState::write(Execution& on, uint64_t physical, uint64_t offset, const std::byte* in, size_t bytes) {
  forPieces(on, physical, offset, bytes, [&](CUarray array, const ArrayInfo& info, uint64_t within, uint64_t done, uint64_t part) {
    writeArray(on, array, info, within, in == nullptr ? nullptr : in + done, part);
  });
}

}  // namespace vgpu::stub
