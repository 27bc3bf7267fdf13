// Which memory the arrays have that are made without: tiles of sparse arrays, and whole arrays of deferred mapping, lie in tile pools
// (physical memory without an address), where the program puts them with cuMemMapArrayAsync.
//
// What is mapped is state of the session: a snapshot has the operations of which something is still in effect, and restore makes them
// again in their order. So what the driver does with an operation of several tiles is the same again, and arrays that share a tile
// share it again. The bytes are those of the pools: read and written, 2 MiB at a time, through a sparse array of ours that has every
// tile of a pool once. So they are in the order of that array's layout, and mean the same on GPUs that lay arrays out alike.
//
// Owned by the session. Operations are executed by the thread of the GPU whose arrays they are about; `mutex` is a leaf. A resource is
// an array or a mipmapped array, by its virtual handle.
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

  // Executes operations in a stream, as they came, with virtual handles; `real` are the same with the driver's arrays. CUDA's answer;
  // those before one that is refused are in effect.
  CUresult execute(Execution& on, CUstream stream, std::span<const CUarrayMapInfo> wanted, std::span<CUarrayMapInfo> real);
  // The resource has ended.
  void forget(uint64_t resource);
  // Whether a resource has memory of it.
  bool uses(uint64_t physical) const;
  // All of a device has ended with its context.
  void drop(unsigned device);
  // The same, and what was made to read its pools is destroyed. CUDA's answer.
  CUresult endDevice(Execution& on);

  // The operations that are in effect: a row each, in their order; `columns` of numbers. `execute` makes one again.
  Rows rows() const;
  static bool isValid(const Row& row, uint64_t devices);
  void restore(Execution& on, const Row& row);
  static unsigned deviceOf(const Row& row);
  static constexpr const char* columns = "nnnnnnnnnnnnn";

  // The bytes of a pool, as of a kind's module (stub/worker/kinds/kind.h).
  void read(Execution& on, uint64_t physical, uint64_t offset, std::byte* out, size_t bytes);
  void write(Execution& on, uint64_t physical, uint64_t offset, const std::byte* in, size_t bytes);

 private:
  // A tile, or what else is mapped as one: type, layer, level, then z, y and x, in tiles.
  using Tile = std::array<uint32_t, 6>;
  struct Operation {
    CUarrayMapInfo info{};  // virtual handles
    uint64_t tiles = 0;     // in effect
  };
  // `tile`: its extent; 0 if the whole resource is mapped at once.
  struct Resource {
    std::array<uint32_t, 3> tile{};
    uint64_t wholeBytes = 0;  // then: the memory that it needs
    std::map<Tile, uint64_t> tiles;  // the number of the last operation on each
    uint64_t mapped = 0;             // tiles that have memory
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
  std::array<std::unique_ptr<Window>, maxDevices> windows;  // by device: of its thread, or while no calls are executed
};

}  // namespace vgpu::stub
