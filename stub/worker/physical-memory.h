// Physical memory of a session's GPUs that the program maps itself (virtual memory management): each of its objects is one of the
// driver's. Leases (stub/gpu/device-leases.h) are what the session's own allocations lie in, and have nothing to do with it.
//
// Physical memory of the host is pinned memory of the session (host-leases.h), which has its own address, or, if other processes may have
// it too, a file that the program has made; a mapping of it is that memory once more, registered with the driver while a device may use
// it. It lies within the addresses that are reserved, which the driver takes (docs/facts.md).
//
// An object that nobody has mapped has bytes too: for a snapshot it is mapped a second time, in a window at addresses of ours.
//
// Owned by the session: what is made on one GPU may be mapped for others. An object is changed by its GPU's thread; any GPU's thread
// may ask owns(), because copies reach all of a session's memory. `mutex` guards the tables; no driver call is made under it. Restore
// makes all of it by recipes, and writes the bytes through windows.
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

  // CUDA's answers; invalid value for what the client does not do: objects that are not there, ranges that overlap. The device is the
  // handle's.
  struct Wanted {
    bool isShareable = false, isTilePool = false, isCompressible = false;
  };
  CUresult create(uint64_t physical, uint64_t bytes, const Wanted& wanted);
  // A descriptor of an object that other processes can map; the caller's to close. And an object of theirs, whose stays the
  // caller's.
  CUresult share(uint64_t physical, uint64_t& bytes, int& descriptor);
  CUresult adopt(uint64_t physical, uint64_t bytes, int descriptor);
  CUresult release(uint64_t physical);
  CUresult map(uint64_t address, uint64_t bytes, uint64_t offset, uint64_t physical);
  // Of that part of the host arena, which is leased.
  CUresult mapHost(uint64_t address, uint64_t bytes, uint64_t arenaAddress, const MemoryFile& arena);
  // Of a file, whose descriptor stays the caller's.
  CUresult mapFile(uint64_t address, uint64_t bytes, int file);
  CUresult unmap(uint64_t address);
  CUresult setAccess(uint64_t address, unsigned device, CUmemAccess_flags flags);

  // While recipes are executed: a frame may name memory that was mapped and that its device could write when its call was made, and is
  // not now, or not yet. `execute` is called again as long as it finds a value invalid and owns() has been asked for such memory: with
  // memory that nobody sees wherever none is mapped, and with access lent to the device. CUDA's answer of the last time. The stand-ins go,
  // and access is again what it was, when something is mapped, or by endStandIns(); access that a recipe sets meanwhile stays.
  CUresult withStandIns(unsigned device, const std::function<CUresult()>& execute);
  void endStandIns();

  // Any thread. Whether mappings cover [address, address + bytes).
  bool owns(uint64_t address, uint64_t bytes) const;
  // Any thread. Whether any of that part of the host arena is mapped.
  bool mapsHost(uint64_t arenaAddress, uint64_t bytes) const;

  // Any thread. The device whose memory is mapped there, if any is.
  std::optional<unsigned> deviceAt(uint64_t address) const;

  // Unmaps and releases everything of a device. CUDA's answer: the first error.
  CUresult endDevice(unsigned device);

  // Any thread. One of the driver's objects: nothing if there is none. A tile pool has no address (tile-state.h).
  struct Found {
    CUmemGenericAllocationHandle real;
    uint64_t bytes;
    bool isTilePool, isCompressed;
  };
  std::optional<Found> find(uint64_t physical) const;

  // The objects: by handle, their bytes.
  std::map<uint64_t, uint64_t> live() const;
  // Where all bytes of an object can be read and written in its device's context. Throws kj::Exception if the driver refuses.
  uint64_t windowOf(uint64_t physical);

 private:
  struct Object {
    CUmemGenericAllocationHandle real = 0;
    uint64_t bytes = 0, window = 0, mappings = 0;
    bool isTilePool = false, isCompressed = false;
  };
  struct Mapping {
    uint64_t bytes = 0, physical = 0;
    bool isHosts = false;       // memory of the host, which is no object,
    uint64_t arenaAddress = 0;  // where it is in the host arena, if it is there
    uint32_t users = 0, writers = 0;  // a bit for each device that may use it, and for each that may write it too
  };

  CUresult add(uint64_t physical, const Object& object);
  CUresult mapObject(uint64_t address, uint64_t bytes, uint64_t offset, uint64_t physical);
  CUresult applyAccess(uint64_t address, unsigned device, CUmemAccess_flags flags);
  bool standIn(unsigned device, uint64_t address, uint64_t bytes);  // whether there is anything that there was not before
  bool lend(unsigned device, uint64_t address);
  CUresult mapOnHost(uint64_t address, const Mapping& mapping, int file, uint64_t place);
  CUresult setHostAccess(uint64_t address, const Mapping& mapping, unsigned device, bool isUser);
  CUresult endHost(uint64_t address, const Mapping& mapping);
  CUresult reserveArenas();
  CUresult openWindow(uint64_t physical, uint64_t& address);

  const Driver& driver;
  mutable std::mutex mutex;
  std::mutex reserving;  // held while the arenas are reserved, the first time that something is mapped
  bool areReserved = false;
  std::map<uint64_t, Object> objects;    // by virtual handle
  std::map<uint64_t, Mapping> mappings;  // by address
  std::map<uint64_t, uint64_t> windows;  // address to bytes
  mutable std::optional<std::vector<std::pair<uint64_t, uint64_t>>> asked;  // what owns() is asked for, if that is wanted
  // While recipes are executed: addresses of stand-ins; and, by a mapping's address and a device, the access before it was lent.
  std::vector<uint64_t> standIns;
  std::map<std::pair<uint64_t, unsigned>, CUmemAccess_flags> lent;
};

}  // namespace vgpu::stub
