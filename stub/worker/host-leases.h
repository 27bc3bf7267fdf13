// The parts of the host arena that a session has leased: pinned memory, registered with the driver for every GPU. In a session of a virtual
// machine's program, some are pieces of the memory that the machine shares with this host (vgpu/wire/guest-file.h), mapped over the arena.
// Also the program's own memory that it has registered: adopted by the arena, or of a file that it shares with other processes.
//
// Owned by the session's state. Any GPU's thread: `mutex` guards all of it, and leases are registered under it, because no GPU may be given
// work with memory that another thread is still registering. Adopted memory is registered without the mutex: the program does not use it
// before the reply. A suspend drops the mappings; restore leases the same pieces again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "stub/driver/driver.h"
#include "vgpu/base/memory-file.h"
#include "vgpu/wire/arena.h"
#include "vgpu/wire/guest-file.h"

namespace vgpu::stub {

// Limits of the host memory that a session may have pinned, in leases and adopted pieces, which keep their memory until they end.
struct HostLimits {
  uint64_t bytes;                       // of all pieces
  uint64_t pieces;
  std::function<uint64_t()> available;  // what the machine can give now without taking memory from other processes

  // Seven eighths of this machine's memory.
  static HostLimits ofThisMachine();
};

// Maps `file` from `place` on at the address, over whatever is there. False if the system refuses.
bool mapOver(uint64_t address, uint64_t bytes, int file, uint64_t place);
// Whether it is a regular file that contains [place, place + bytes); the file may end within the last page.
bool hasBytes(int file, uint64_t place, uint64_t bytes);

class HostLeases {
 public:
  explicit HostLeases(const Driver& driver, HostLimits limits = HostLimits::ofThisMachine())
      : driver(driver), limits(std::move(limits)) {}
  ~HostLeases();
  HostLeases(const HostLeases&) = delete;
  HostLeases& operator=(const HostLeases&) = delete;

  // Leases [address, address + bytes) of the host arena. registerAll() registers it with the driver before a GPU next gets work: until then
  // it costs nothing, and pages that the program has touched meanwhile cost less. Out of memory if a limit is reached, or if the machine
  // has less memory available than this and earlier unregistered leases will still take. endLease also returns its pages to the system.
  CUresult lease(uint64_t address, uint64_t bytes, const MemoryFile& arena);
  // Like lease(), for the piece at `place` of the virtual machine's memory that contains `segment`, which must outlive the lease. Allocates
  // the memory at once. Already mapped if another session has any of the piece. The session keeps the piece, with its bytes, over a
  // suspend.
  CUresult leasePiece(uint64_t address, uint64_t bytes, uint64_t place, const MemoryFile& segment, const MemoryFile& arena);
  CUresult endLease(uint64_t address, const MemoryFile& arena);
  // Without the lock: a program sends work with a lease only after the lease's reply.
  bool hasUnregistered() const { return unregistered.load(std::memory_order_acquire) != 0; }
  CUresult registerAll();
  // Ends all leases; the arena's pages stay. CUDA's result.
  CUresult endAll();

  // Maps that part of the host arena a second time, at an address of the program's, and registers it there; isReadOnly: GPUs only read it.
  // Invalid value if the range is not valid or any of it is leased or adopted, already mapped if this process has another mapping at the
  // address, out of memory as for lease().
  CUresult adopt(uint64_t address, uint64_t arenaAddress, uint64_t bytes, bool isReadOnly, const MemoryFile& arena);
  // Like adopt(), for a file; its descriptor stays the caller's. Invalid value if the file has no such part, or if it is not in memory and
  // GPUs may write it, as the driver's result for a file on disk.
  struct FilePart {
    int file;
    uint64_t offset;
    bool isReadOnly;
  };
  CUresult adoptFile(uint64_t address, uint64_t bytes, const FilePart& part, const MemoryFile& arena);
  CUresult release(uint64_t address, const MemoryFile& arena);

  // Whether [address, address + bytes) lies within contiguous leased memory: only such memory may a session name in a copy.
  bool owns(uint64_t address, uint64_t bytes) const;
  // Whether all of that part of the host arena is leased and is the arena's own memory.
  bool ownsArena(uint64_t arenaAddress, uint64_t bytes) const;
  // The size of the lease at `address`; 0 if there is none.
  uint64_t bytesAt(uint64_t address) const;

 private:
  struct Lease {
    uint64_t bytes;
    uint64_t arenaAddress = 0;  // the arena's bytes that are mapped there; 0: a file of the program's
    bool registered = false, isReadOnly = false;
    int machine = -1;    // descriptor of a virtual machine's memory, if a piece of it is mapped there instead,
    uint64_t place = 0;  // and the piece's offset
  };
  CUresult end(std::map<uint64_t, Lease>::iterator lease, const MemoryFile& arena);
  CUresult registerLease(uint64_t address, const Lease& lease);
  // Whether a piece of `bytes`, of which `absentBytes` have no memory yet, is within the limits.
  bool hasRoom(uint64_t bytes, uint64_t absentBytes, const MemoryFile& arena);
  bool isFreePiece(const GuestLocks::Range& piece, const MemoryFile& segment) const;
  // Mark a part of the arena as used, or as free again.
  void take(const Lease& lease);
  void giveBack(const Lease& lease);
  // For a lease that has been taken, at an address of the program's; on failure it is given back.
  CUresult mapTaken(uint64_t address, const Lease& lease, int file, uint64_t place);
  CUresult mapAndRegister(uint64_t address, const Lease& lease, int file, uint64_t place);

  const Driver& driver;
  HostLimits limits;
  std::map<uint64_t, Lease> leases;             // by the address at which the program has them
  std::map<uint64_t, uint64_t> usedArena;       // the parts of the host arena that they use: address -> bytes
  std::map<uint64_t, uint64_t> usedPieces;      // the parts of a machine's memory that they use: place -> bytes
  uint64_t leasedBytes = 0;
  uint64_t promisedBytes = 0;   // upper bound of what registering will still allocate: the program may have touched some pages meanwhile
  std::atomic<unsigned> unregistered{0};  // number of leases
  mutable std::mutex mutex;
};

}  // namespace vgpu::stub
