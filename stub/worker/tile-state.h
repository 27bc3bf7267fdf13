// The memory of arrays that are made without memory: tiles of sparse arrays, and whole arrays of deferred mapping, lie in tile pools
// (physical memory without an address), where the program puts them with cuMemMapArrayAsync.
//
// The mappings are state of the session: a snapshot has the operations of which any part is still in effect, and restore executes them
// again in order. So an operation of several tiles has the same effect as before, and arrays that share a tile share it again. The saved
// bytes are those of the pools: read and written, 2 MiB at a time, through a sparse array of the worker's (Window) that maps every tile of
// a piece once. So they are in that array's layout, and valid only on GPUs with the same layout.
//
// Owned by the session. Operations are executed by the thread of the GPU whose arrays they name; `mutex` is a leaf. A resource is an array
// or a mipmapped array, by its virtual handle.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "vgpu/objects/state-table.h"
#include "vgpu/wire/arena.h"

namespace vgpu::stub {

class Execution;

class TileState {
 public:
  TileState();
  ~TileState();
  TileState(const TileState&) = delete;

  // Executes operations in a stream, in order. `wanted` has virtual handles, `real` the same with the driver's arrays. CUDA's result;
  // operations before a refused one are in effect.
  CUresult execute(Execution& on, CUstream stream, std::span<const CUarrayMapInfo> wanted, std::span<CUarrayMapInfo> real);
  // Forgets a resource that has ended.
  void forget(uint64_t resource);
  // Whether a resource has memory of that pool.
  bool uses(uint64_t physical) const;
  // Forgets all state of a device whose context has ended.
  void drop(unsigned device);
  // drop(), and also destroys the window of the device. CUDA's result.
  CUresult endDevice(Execution& on);

  // The operations in effect, one row each, in order; `columns` of numbers. restore() executes one again.
  Rows rows() const;
  static bool isValid(const Row& row, uint64_t devices);
  void restore(Execution& on, const Row& row);
  static unsigned deviceOf(const Row& row);
  static constexpr const char* columns = "nnnnnnnnnnnnn";

  // The bytes of a pool, as a kind's module reads and writes them (stub/worker/kinds/kind.h).
  void read(Execution& on, uint64_t physical, uint64_t offset, std::byte* out, size_t bytes);
  void write(Execution& on, uint64_t physical, uint64_t offset, const std::byte* in, size_t bytes);

 private:
  // A tile, or a part that is mapped like a tile: type, layer, level, then z, y and x in tiles.
  using Tile = std::array<uint32_t, 6>;
  struct Operation {
    CUarrayMapInfo info{};  // virtual handles
    uint64_t tiles = 0;     // tiles on which it is in effect
  };
  // `tile`: the extent of a tile; 0 if the whole resource is mapped at once.
  struct Resource {
    std::array<uint32_t, 3> tile{};
    uint64_t wholeBytes = 0;  // in that case: the memory that it needs
    std::map<Tile, uint64_t> tiles;  // the number of the last operation on each tile
    uint64_t mapped = 0;             // number of tiles that have memory
  };
  class Window;

  CUresult executeOne(Execution& on, CUstream stream, const CUarrayMapInfo& wanted, CUarrayMapInfo& real);
  CUresult describe(Execution& on, const CUarrayMapInfo& real, Resource& resource);
  void record(uint64_t handle, Resource resource, const CUarrayMapInfo& wanted);
  void release(uint64_t number);
  Window& windowOf(Execution& on);
  template <typename Copy>
  void forPieces(Execution& on, uint64_t physical, uint64_t offset, uint64_t bytes, Copy copy);

  mutable std::mutex mutex;
  std::map<uint64_t, Resource> resources;
  std::map<uint64_t, Operation> operations;  // by number
  uint64_t next = 1;
  std::array<std::unique_ptr<Window>, maxDevices> windows;  // by device: used by its thread, or while no calls are executed
};

}  // namespace vgpu::stub
