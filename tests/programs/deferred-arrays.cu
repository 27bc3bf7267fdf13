// Arrays with deferred mapping: they are created without memory and later get all of it from a pool, which others may share.
#include "tiles.h"

namespace {

__global__ void addToAll(cudaSurfaceObject_t surface, int width, int height, uint32_t add) {
  for (int i = threadIdx.x; i < width * height; i += blockDim.x)
    surf2Dwrite(surf2Dread<uint32_t>(surface, i % width * 4, i / width) + add, surface, i % width * 4, i / width);
}

struct World {
  CUarray first = makeArray(100, 70, 0, CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_SURFACE_LDST);
  CUarray same = makeArray(100, 70, 0, CUDA_ARRAY3D_DEFERRED_MAPPING), empty = makeArray(100, 70, 0, CUDA_ARRAY3D_DEFERRED_MAPPING);
  CUmipmappedArray levels{};
  CUarray level{};
  CUmemGenericAllocationHandle pool{};
  CUsurfObject surface{};
  uint64_t bytes = 0;
};

CUarrayMapInfo memoryOf(CUarray array, CUmemGenericAllocationHandle pool = 0, uint64_t offset = 0) {
  return change(array, {7, 7, 7, 7, 7, 7, 7, 7}, pool, offset);  // the coordinates are ignored
}

void build(World& world) {
  CUDA_ARRAY_MEMORY_REQUIREMENTS needed{}, levelsNeed{};
  CALL(cuArrayGetMemoryRequirements, &needed, world.first, 0);
  CUDA_ARRAY3D_DESCRIPTOR shape{64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_DEFERRED_MAPPING};
  CALL(cuMipmappedArrayCreate, &world.levels, &shape, 3);
  CALL(cuMipmappedArrayGetLevel, &world.level, world.levels, 1);
  CALL(cuMipmappedArrayGetMemoryRequirements, &levelsNeed, world.levels, 0);
  world.bytes = (needed.size + needed.alignment - 1) / needed.alignment * needed.alignment;
  world.pool = makePool((2 * world.bytes + levelsNeed.size + 2 * MiB - 1) / (2 * MiB) * (2 * MiB));
  check(map({memoryOf(world.first, world.pool, world.bytes), memoryOf(world.same, world.pool, world.bytes)}), "mapping two arrays");
  check(map({change(world.levels, {}, world.pool, 2 * world.bytes)}), "mapping levels");
  check(fill(world.first, 0, 0, 0, 100, 70, 12), "filling an array");
  check(fill(world.level, 0, 0, 0, 32, 32, 13), "filling a level");
  CUDA_RESOURCE_DESC resource{};
  resource.res.array.hArray = world.first;
  CALL(cuSurfObjectCreate, &world.surface, &resource);
}

bool isRight(const World& world, uint32_t value) {
  return holds(world.first, 0, 0, 0, 100, 70, value) & holds(world.same, 0, 0, 0, 100, 70, value) & holds(world.level, 0, 0, 0, 32, 32, 13);
}

bool memoryMoves(World& world) {
  addToAll<<<1, 128>>>(world.surface, 100, 70, 1 << 16);
  CHECK(cudaDeviceSynchronize());
  bool ok = isRight(world, 13);
  check(map({memoryOf(world.same), memoryOf(world.empty, world.pool, world.bytes)}), "mapping another array");
  ok &= holds(world.empty, 0, 0, 0, 100, 70, 13);
  check(map({memoryOf(world.same, world.pool, 0)}), "mapping other memory");
  check(fill(world.same, 0, 0, 0, 100, 70, 99), "filling other memory");
  return ok & holds(world.first, 0, 0, 0, 100, 70, 13) & holds(world.same, 0, 0, 0, 100, 70, 99);
}

bool requirementsAreAskedFor(const World& world) {
  int isSupported = 0;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needed{};
  CUDA_ARRAY_SPARSE_PROPERTIES tiles{};
  const CUarray plain = makeArray(64, 64, 0, 0);
  CALL(cuDeviceGetAttribute, &isSupported, CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 0);
  bool ok = EXPECT(isSupported == 1);
  ok &= EXPECT(DRIVER(cuArrayGetMemoryRequirements)(&needed, plain, 0) == CUDA_ERROR_INVALID_VALUE);
  ok &= EXPECT(DRIVER(cuArrayGetSparseProperties)(&tiles, world.first) == CUDA_ERROR_INVALID_VALUE);
  CALL(cuArrayGetMemoryRequirements, &needed, world.first, 0);
  ok &= EXPECT(needed.alignment == tileBytes && needed.size >= 100 * 70 * 4);
  ok &= EXPECT(map({memoryOf(plain, world.pool, 0)}) == CUDA_ERROR_INVALID_VALUE);
  ok &= EXPECT(map({memoryOf(world.empty, world.pool, 512)}) == CUDA_ERROR_INVALID_VALUE);
  CALL(cuArrayDestroy, plain);
  return ok;
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  World world;
  build(world);
  bool ok = isRight(world, 12);
  pausePoint();
  ok &= isRight(world, 12) & requirementsAreAskedFor(world) & memoryMoves(world);
  return verdict("deferred-arrays", ok);
}
