// Physical memory of one GPU, leased to the session in large pieces and mapped at the fixed addresses of that GPU's arena.
//
// A lease consists of one driver object (cuMemCreate), or of several if parts of it are shared with other processes, which get whole
// objects, or lie in memory of another GPU. A shared allocation shares only the granules that it touches; only the first and the last of
// these may hold bytes of other allocations. So these two granules are objects of their own, however many shared allocations lie in them,
// and the part between is one object.
//
// Owned and changed by the thread of its GPU; any other GPU's thread may call owns(), because a copy may name memory of any of the
// session's GPUs. `mutex` is a leaf; access is granted under it, so that a new lease and a device that starts at the same time always see
// each other. A suspend drops the mappings; restore leases the same pieces again.
#pragma once

#include <kj/io.h>

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "stub/driver/driver.h"
#include "vgpu/wire/arena.h"

namespace vgpu::stub {

struct LeasedRange {
  unsigned device = 0;
  uint64_t address = 0, bytes = 0;
  auto operator<=>(const LeasedRange&) const = default;
};

class DeviceLeases {
 public:
  DeviceLeases(const Driver& driver, unsigned device) : driver(driver), device(device) {}
  ~DeviceLeases();
  DeviceLeases(const DeviceLeases&) = delete;
  DeviceLeases& operator=(const DeviceLeases&) = delete;

  // Reserves the arena. `isOneOfSeveral`: managed memory may be placed in memory of other GPUs. Throws kj::Exception if the driver does not
  // return exactly that address.
  void reserveArena(bool isOneOfSeveral);
  // Gives `other`, whose context exists, access to present and future leases, if it can reach this GPU's memory. Any thread. Throws
  // kj::Exception.
  void letReach(unsigned other);

  // The location of the next `bytes` of a lease: memory of one of the session's devices, which has a context.
  struct Placement {
    uint64_t bytes;
    unsigned device;
  };
  // lease() will use these placements, except for parts for which there is no room.
  void plan(uint64_t address, std::vector<Placement> placements) { planned[address] = std::move(placements); }

  // Backs [address, address + bytes) of the arena. CUDA's result: out of memory, or invalid value if the range is not free in the arena or
  // not in whole granules.
  CUresult lease(uint64_t address, uint64_t bytes);
  CUresult endLease(uint64_t address);
  // Like lease(), for a session that has not arrived yet: the memory is allocated but owned by nobody until lease() asks for this exact
  // range. Ends earlier leases made ahead that overlap it. Managed memory, which may have been moved on the source, goes to another GPU as
  // far as there is no room on this one.
  CUresult leaseAhead(uint64_t address, uint64_t bytes);
  // Ends what was leased ahead or planned and has not been claimed since.
  void endUnclaimed();

  // Memory that another process maps too: each part is one driver object.
  struct Part {
    uint64_t bytes;
    int descriptor;  // closed by the caller
  };
  // Moves the parts that contain [address, address + bytes) to objects of their own, unless they are already, and returns them with
  // descriptors. While no GPU uses them. CUDA's result: out of memory if there is none for the move; then nothing has changed.
  CUresult share(uint64_t address, uint64_t bytes, std::vector<Part>& parts);
  // Undoes share() for an allocation: moves its parts to objects that no other process has, except parts in which another allocation of
  // this session is still shared. While no GPU uses them.
  CUresult unshare(uint64_t address, uint64_t bytes);
  // Leases another process's memory, with its parts in order; their descriptors stay the caller's. Ended like any lease.
  CUresult adopt(uint64_t address, const std::vector<Part>& parts);

  // A part of an object that must move to the memory of a GPU, given by the driver's number.
  struct Move {
    uint64_t begin, end;
    CUdevice gpu;
  };
  // The parts of a lease of managed memory that are misplaced. Nothing if the placements, in order, are not whole granules that cover
  // exactly such a lease.
  std::optional<std::vector<Move>> findMoves(uint64_t address, const std::vector<Placement>& placements) const;
  // While no GPU uses the memory. CUDA's result; after an error, parts may have been moved: out of memory, or another error if that GPU
  // cannot reach this one's memory.
  CUresult move(const std::vector<Move>& moves);

  // A driver object that holds leased memory, exported to a process that copies from it.
  struct Shown {
    uint64_t address, bytes;
    kj::AutoCloseFd descriptor;
  };
  // The largest objects, at most so many. Any thread.
  std::vector<Shown> show(size_t most) const;
  // Copies what the object exported by another process has of `ranges`, which are leased here at the same addresses. While no GPU uses
  // them. CUDA's result; after an error, parts may have been copied.
  CUresult copyFrom(const Shown& shown, const std::vector<LeasedRange>& ranges);

  // Any thread. Whether [address, address + bytes) lies within contiguous leased memory: only such memory may a session name in a copy.
  bool owns(uint64_t address, uint64_t bytes) const;
  // All leases, by address. Any thread.
  std::vector<LeasedRange> ranges() const;

 private:
  // One driver object, the driver's number of its GPU, and how many shared allocations lie in it.
  struct Piece {
    uint64_t bytes;
    CUmemGenericAllocationHandle physical;
    CUdevice gpu;
    unsigned shared = 0;
  };
  using Pieces = std::map<uint64_t, Piece>;  // by address
  struct Lease {
    uint64_t bytes;
    Pieces pieces;
    bool isAhead = false;  // leaseAhead(): not claimed yet
  };
  struct Range {
    uint64_t begin, end;
  };

  // A new object that is not mapped yet; the second form on this GPU.
  CUresult make(uint64_t bytes, CUdevice gpu, Piece& piece);
  CUresult make(uint64_t bytes, Piece& piece) { return make(bytes, driver.device(device), piece); }
  static bool areWhole(const std::vector<Placement>& placements, uint64_t bytes);
  std::vector<CUdevice> gpusThatReach() const;
  // Places pieces as planned, or on this GPU; if there is no room, on the first of `gpus` that has room.
  CUresult makeLease(uint64_t address, uint64_t bytes, const std::vector<CUdevice>& gpus);
  CUresult makePieces(uint64_t address, uint64_t bytes, const std::vector<CUdevice>& gpus, Pieces& pieces);
  void release(const Pieces& pieces);
  CUresult mapAside(uint64_t bytes, CUmemGenericAllocationHandle physical, uint64_t at);
  CUresult map(uint64_t address, const Piece& piece);
  CUresult add(uint64_t address, uint64_t bytes, Pieces pieces);
  std::vector<Range> partsOf(uint64_t address, uint64_t bytes) const;
  Lease& leaseOf(uint64_t address);
  CUresult shareOne(const Range& range, std::vector<Part>& parts);
  CUresult unshareOne(const Range& range);
  CUresult replace(Pieces& pieces, const Range& range, Pieces by);

  void endAhead(uint64_t address, uint64_t bytes);

  const Driver& driver;
  const unsigned device;
  bool isReserved = false;
  uint64_t mostManaged = UINT64_MAX;  // largest object of managed memory: dividing one needs as much memory again
  CUmemAllocationHandleType handleType = CU_MEM_HANDLE_TYPE_NONE;  // of all objects, so that they can be exported
  // Access for this GPU, and for the other used GPUs that reach its memory: a copy between two GPUs is executed by one of them, and the
  // driver refuses it without access (docs/facts.md). So a program's kernels can access it too, without having enabled it.
  std::vector<CUmemAccessDesc> access;
  std::map<uint64_t, Lease> leases;
  std::map<uint64_t, std::vector<Placement>> planned;  // by address
  mutable std::mutex mutex;  // held to change `leases` and `access`, and to read them on another thread
};

}  // namespace vgpu::stub
