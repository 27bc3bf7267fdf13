// Physical memory of a session's GPUs that the program maps itself (virtual memory management): each object is one of the driver's
// (cuMemCreate). Leases (stub/gpu/device-leases.h), in which the session's own allocations lie, are separate.
//
// Physical memory of the host is pinned memory of the session (host-leases.h), which has its own address, or, if it may be shared with
// other processes, a file that the program has made. Its mapping is a second mapping of that memory, registered with the driver while a
// device may access it. It lies within reserved addresses, which the driver accepts (docs/facts.md).
//
// An object that is not mapped has bytes too: to save it, it is mapped in a window, at addresses of the worker's.
//
// Owned by the session: what is made on one GPU may be mapped for others. An object is changed by its GPU's thread; any GPU's thread may
// call owns(), because a copy may name memory of any of the session's GPUs. `mutex` guards the tables; no driver call is made under it.
// Restore makes all of it by recipes, and writes the bytes through windows.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "stub/driver/driver.h"
#include "vgpu/base/memory-file.h"

namespace vgpu::stub {

class PhysicalMemory {
 public:
  explicit PhysicalMemory(const Driver& driver) : driver(driver) {}
  ~PhysicalMemory();
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  // CUDA's results; invalid value for what no honest client sends: unknown objects, overlapping ranges. The handle determines the device.
  struct Wanted {
    bool isShareable = false, isTilePool = false, isCompressible = false;
  };
  CUresult create(uint64_t physical, uint64_t bytes, const Wanted& wanted);
  // share() gives a descriptor of an object that other processes can import; the caller closes it. adopt() imports their object; the
  // descriptor stays the caller's.
  CUresult share(uint64_t physical, uint64_t& bytes, int& descriptor);
  CUresult adopt(uint64_t physical, uint64_t bytes, int descriptor);
  CUresult release(uint64_t physical);
  CUresult map(uint64_t address, uint64_t bytes, uint64_t offset, uint64_t physical);
  // Maps a part of the host arena, which is leased.
  CUresult mapHost(uint64_t address, uint64_t bytes, uint64_t arenaAddress, const MemoryFile& arena);
  // Maps a file; its descriptor stays the caller's.
  CUresult mapFile(uint64_t address, uint64_t bytes, int file);
  CUresult unmap(uint64_t address);
  CUresult setAccess(uint64_t address, unsigned device, CUmemAccess_flags flags);

  // While recipes are executed: a frame may name memory that was mapped and writable by its device when the call was made, but is not now,
  // or not yet. `execute` is called again as long as it returns CUDA_ERROR_INVALID_VALUE and called owns() for such memory, each time with
  // temporary memory (stand-ins) mapped where none is mapped, and with write access lent to the device. Returns CUDA's result of the last
  // call. The next mapping, or endStandIns(), first unmaps all stand-ins and restores the access from before; access that a recipe
  // sets meanwhile stays.
  CUresult withStandIns(unsigned device, const std::function<CUresult()>& execute);
  void endStandIns();

  // Any thread. Whether mappings cover [address, address + bytes).
  bool owns(uint64_t address, uint64_t bytes) const;
  // Any thread. Whether any of that part of the host arena is mapped.
  bool mapsHost(uint64_t arenaAddress, uint64_t bytes) const;

  // Any thread. The device whose memory is mapped there, if any.
  std::optional<unsigned> deviceAt(uint64_t address) const;

  // Unmaps and releases all memory of a device. CUDA's result: the first error.
  CUresult endDevice(unsigned device);

  // Any thread. One of the driver's objects; nothing if there is none. A tile pool has no address (tile-state.h).
  struct Found {
    CUmemGenericAllocationHandle real;
    uint64_t bytes;
    bool isTilePool, isCompressed;
  };
  std::optional<Found> find(uint64_t physical) const;

  // All objects: handle -> bytes.
  std::map<uint64_t, uint64_t> live() const;
  // The address at which all bytes of an object can be read and written in its device's context. Throws kj::Exception if the driver
  // refuses.
  uint64_t windowOf(uint64_t physical);

 private:
  struct Object {
    CUmemGenericAllocationHandle real = 0;
    uint64_t bytes = 0, window = 0, mappings = 0;
    bool isTilePool = false, isCompressed = false;
  };
  struct Mapping {
    uint64_t bytes = 0, physical = 0;
    bool isHosts = false;             // host memory, which is not an object,
    uint64_t arenaAddress = 0;        // its address if it is in the host arena,
    uint32_t users = 0, writers = 0;  // and a bit for each device that may access it, and for each that may write it
  };

  CUresult add(uint64_t physical, const Object& object);
  CUresult mapObject(uint64_t address, uint64_t bytes, uint64_t offset, uint64_t physical);
  CUresult applyAccess(uint64_t address, unsigned device, CUmemAccess_flags flags);
  bool standIn(unsigned device, uint64_t address, uint64_t bytes);  // whether it mapped or lent anything
  bool lend(unsigned device, uint64_t address);
  CUresult mapOnHost(uint64_t address, const Mapping& mapping, int file, uint64_t place);
  CUresult setHostAccess(uint64_t address, const Mapping& mapping, unsigned device, bool isUser);
  CUresult endHost(uint64_t address, const Mapping& mapping);
  CUresult reserveArenas();
  CUresult openWindow(uint64_t physical, uint64_t& address);

  const Driver& driver;
  mutable std::mutex mutex;
  std::mutex reserving;  // held while the arenas are reserved, at the first mapping
  bool areReserved = false;
  std::map<uint64_t, Object> objects;    // by virtual handle
  std::map<uint64_t, Mapping> mappings;  // by address
  std::map<uint64_t, uint64_t> windows;  // address to bytes
  mutable std::optional<std::vector<std::pair<uint64_t, uint64_t>>> asked;  // while collected: the ranges of owns() calls
  // While recipes are executed: the addresses of stand-ins; and, by address of a mapping and device, the access from before it was lent.
  std::vector<uint64_t> standIns;
  std::map<std::pair<uint64_t, unsigned>, CUmemAccess_flags> lent;
};

}  // namespace vgpu::stub
