// Physical memory of one GPU, leased to the session in large pieces and mapped at the fixed addresses of that GPU's arena.
//
// A lease is one object of the driver's, or several: if parts of it are shared with other processes, which see whole objects, or lie
// in memory of another GPU. A shared allocation shares no more than the granules that it touches, of which only the first and the
// last may hold others' bytes too. So these two are objects by themselves, however many allocations in them are shared, and what
// lies between is one.
//
// Owned and changed by the thread of its GPU; any other GPU's thread may ask owns(), because copies reach all of a session's
// memory. `mutex` is a leaf; access is given under it, so that a lease and a device that come at one time do not miss each other.
// A suspend drops the mappings; restore leases the same pieces again.
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

  // Reserves the arena. `isOneOfSeveral`: managed memory may be placed in memory of other GPUs. Throws kj::Exception if the driver
  // does not give that very address.
  void reserveArena(bool isOneOfSeveral);
  // Lets `other`, whose context is there, use what is leased and what will be, if it can reach this GPU's memory. Any thread. Throws
  // kj::Exception.
  void letReach(unsigned other);

  // Where the next `bytes` of a lease are to be: in memory of one of the session's devices, which has a context.
  struct Placement {
    uint64_t bytes;
    unsigned device;
  };
  // lease() will make the lease there, but for what there is no room for.
  void plan(uint64_t address, std::vector<Placement> placements) { planned[address] = std::move(placements); }

  // Backs [address, address + bytes) of the arena. CUDA's answer: out of memory, or invalid value if the range is not free in
  // the arena or not in whole granules.
  CUresult lease(uint64_t address, uint64_t bytes);
  CUresult endLease(uint64_t address);
  // The same as lease(), for a session that is not there yet: the memory is there, and owned by nobody until lease() asks for this very
  // range. What overlaps it and was leased ahead before ends. Of managed memory, which may have been moved where it comes from, what
  // there is no room for is in memory of another GPU.
  CUresult leaseAhead(uint64_t address, uint64_t bytes);
  // Ends what was leased ahead, or planned, and not asked for since.
  void endUnclaimed();

  // Memory that another process maps too: a part is an object of the driver's.
  struct Part {
    uint64_t bytes;
    int descriptor;  // the caller's to close
  };
  // The parts that hold [address, address + bytes), moved to objects of their own, with descriptors, unless they are already.
  // While no GPU uses them. CUDA's answer: out of memory if there is none for the move; then all is as before.
  CUresult share(uint64_t address, uint64_t bytes, std::vector<Part>& parts);
  // Ends that, for an allocation that was shared: moved to objects that no other process has, unless another one of this
  // session's in them is still shared. While no GPU uses them.
  CUresult unshare(uint64_t address, uint64_t bytes);
  // A lease of another process's memory, in the order of its parts, whose descriptors stay the caller's. Ended as any.
  CUresult adopt(uint64_t address, const std::vector<Part>& parts);

  // A part of an object that is to be in memory of a GPU, which has the driver's number.
  struct Move {
    uint64_t begin, end;
    CUdevice gpu;
  };
  // What of a lease of managed memory is elsewhere. Nothing if the placements, in order, are not whole granules and all of such a lease.
  std::optional<std::vector<Move>> findMoves(uint64_t address, const std::vector<Placement>& placements) const;
  // While no GPU uses it. CUDA's answer, and some of it may have been moved then: out of memory, or another one if that GPU does not reach
  // this one's memory.
  CUresult move(const std::vector<Move>& moves);

  // An object of the driver's that holds leased memory, for a process that copies from it.
  struct Shown {
    uint64_t address, bytes;
    kj::AutoCloseFd descriptor;
  };
  // The largest, at most so many. Any thread.
  std::vector<Shown> show(size_t most) const;
  // Copies from the object that another process shows what it has of `ranges`, which are leased here at the same addresses. While
  // no GPU uses them. CUDA's answer; some of it may have been copied then.
  CUresult copyFrom(const Shown& shown, const std::vector<LeasedRange>& ranges);

  // Any thread. Whether [address, address + bytes) lies within one run of leased memory: what a session may name in a copy.
  bool owns(uint64_t address, uint64_t bytes) const;
  // All that is leased, by address. Any thread.
  std::vector<LeasedRange> ranges() const;

 private:
  // One object of the driver's, the driver's number of its GPU, and how many allocations in it are shared.
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
    bool isAhead = false;  // leaseAhead(): not owned yet
  };
  struct Range {
    uint64_t begin, end;
  };

  // A new object that is nowhere yet; on this GPU.
  CUresult make(uint64_t bytes, CUdevice gpu, Piece& piece);
  CUresult make(uint64_t bytes, Piece& piece) { return make(bytes, driver.device(device), piece); }
  static bool areWhole(const std::vector<Placement>& placements, uint64_t bytes);
  std::vector<CUdevice> gpusThatReach() const;
  // Where it is planned to be, or on this GPU; what there is no room for on the first of `gpus` that has it.
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
  uint64_t mostManaged = UINT64_MAX;  // bytes of an object of managed memory: while one is divided, as much is needed again
  CUmemAllocationHandleType handleType = CU_MEM_HANDLE_TYPE_NONE;  // of all objects, so that other processes can have them
  // Of this GPU, and of the others that are used and reach its memory: a copy between two GPUs is executed by one of them, and the
  // driver refuses it to one that may not (docs/facts.md). So a program's kernels reach it without having enabled it, too.
  std::vector<CUmemAccessDesc> access;
  std::map<uint64_t, Lease> leases;
  std::map<uint64_t, std::vector<Placement>> planned;  // by address
  mutable std::mutex mutex;  // held to change `leases` and `access`, and to read them on another thread
};

}  // namespace vgpu::stub
