// The process's emulated driver: its devices, its address space, its scheduler and the objects that it has made.
//
// There is one, made by cuInit and never destroyed: executor threads and the program's own exit handlers may still make calls while static
// objects are destroyed.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "stub/emulator/driver/context.h"
#include "stub/emulator/driver/green-context.h"
#include "stub/emulator/driver/registry.h"
#include "stub/emulator/driver/settings.h"
#include "stub/emulator/memory/address-space.h"
#include "stub/emulator/memory/array.h"
#include "stub/emulator/memory/device-pool.h"
#include "stub/emulator/memory/memory-pool.h"
#include "stub/emulator/memory/texture-reference.h"
#include "stub/emulator/memory/texture.h"
#include "stub/emulator/module/link.h"
#include "stub/emulator/module/loaded-module.h"
#include "stub/emulator/stream/device-graph-handles.h"
#include "stub/emulator/stream/event.h"
#include "stub/emulator/stream/graph.h"
#include "stub/emulator/stream/scheduler.h"

namespace vgpu::emulator::api {

class Driver {
 public:
  explicit Driver(const Settings&);

  const Settings settings;
  Scheduler scheduler;
  AddressSpace space;

  int deviceCount() const { return static_cast<int>(devices.size()); }
  Device& device(CUdevice ordinal);  // refuses with CUDA_ERROR_INVALID_DEVICE
  DevicePool& pool(const Device& device) { return *pools[static_cast<size_t>(device.ordinal())]; }

  Registry<Context, CUcontext> contexts{0x11, CUDA_ERROR_INVALID_CONTEXT};
  Registry<Stream, CUstream> streams{0x12, CUDA_ERROR_INVALID_HANDLE};
  Registry<Event, CUevent> events{0x13, CUDA_ERROR_INVALID_HANDLE};
  Registry<LoadedModule, CUmodule> modules{0x14, CUDA_ERROR_INVALID_HANDLE};
  Registry<Function, CUfunction> functions{0x15, CUDA_ERROR_INVALID_HANDLE};
  Registry<Library, CUlibrary> libraries{0x16, CUDA_ERROR_INVALID_HANDLE};
  Registry<LibraryKernel, CUkernel> kernels{0x17, CUDA_ERROR_INVALID_HANDLE};
  Registry<Physical, CUmemGenericAllocationHandle> physical{0x18, CUDA_ERROR_INVALID_VALUE};

  Registry<Array, CUarray> arrays{0x19, CUDA_ERROR_INVALID_HANDLE};
  Registry<MipmappedArray, CUmipmappedArray> mipmappedArrays{0x1a, CUDA_ERROR_INVALID_HANDLE};
  Registry<Link, CUlinkState> links{0x1b, CUDA_ERROR_INVALID_HANDLE};

  Registry<MemoryPool, CUmemoryPool> memoryPools{0x1c, CUDA_ERROR_INVALID_VALUE};
  TextureObjects textures;
  Registry<TextureReference, CUtexref> textureReferences{0x22, CUDA_ERROR_INVALID_HANDLE};
  Registry<SurfaceReference, CUsurfref> surfaceReferences{0x23, CUDA_ERROR_INVALID_HANDLE};

  Registry<GreenContext, CUgreenCtx> greenContexts{0x20, CUDA_ERROR_INVALID_CONTEXT};
  Registry<ResourceDescription, CUdevResourceDesc> resourceDescriptions{0x21, CUDA_ERROR_INVALID_VALUE};

  std::shared_ptr<MemoryPool> defaultPool(const Device& device) { return poolState(device).fallback; }
  std::shared_ptr<MemoryPool> currentPool(const Device&);
  void setCurrentPool(const Device&, std::shared_ptr<MemoryPool>);
  void forgetPool(const MemoryPool&);  // if it is its device's current pool, the default pool becomes current
  void freePlain(const Mapping&);      // frees the memory, and updates its pool's counts

  std::mutex graphMutex;  // guards all graphs and captures
  Registry<Graph, CUgraph> graphs{0x1d, CUDA_ERROR_INVALID_VALUE};
  Registry<GraphNode, CUgraphNode> graphNodes{0x1e, CUDA_ERROR_INVALID_VALUE};
  Registry<GraphExec, CUgraphExec> graphExecs{0x1f, CUDA_ERROR_INVALID_VALUE};
  BlockHandles deviceGraphHandles{deviceGraphBlock, 0x74300, 192, BlockHandles::Again::lastFirst};  // of graphs that kernels can launch
  DeviceNodes deviceNodes;
  std::vector<std::weak_ptr<Capture>> captures;

  // A primary context keeps its handle when it is destroyed and made again; `handle` is null the first time, and for any other context.
  std::shared_ptr<Context> createContext(Device&, unsigned flags, bool primary, CUcontext handle = nullptr);
  struct Primary {
    std::shared_ptr<Context> context;
    CUcontext handle = nullptr;
    unsigned flags = 0;
    int retained = 0;
  };
  Primary& primary(const Device& device) { return primaries[static_cast<size_t>(device.ordinal())]; }
  std::mutex lifeMutex;  // guards the primaries
  // The first fault of the process, if faults are final: from then on every context returns it, and no context can be created.
  std::atomic<int> fault{CUDA_SUCCESS};

 private:
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<DevicePool>> pools;
  std::vector<Primary> primaries;
  std::vector<std::shared_ptr<Context>> formerPrimaries;  // shells whose handle belongs to a new context; see context.h
  struct PoolState {
    std::shared_ptr<MemoryPool> fallback, current;
  };
  PoolState& poolState(const Device& device) { return poolStates[static_cast<size_t>(device.ordinal())]; }
  std::mutex poolMutex;
  std::vector<PoolState> poolStates;
};

}  // namespace vgpu::emulator::api
