// The parts of the host arena that a session has leased: pinned memory, registered with the driver for every GPU. Of a program
// in a virtual machine some are pieces of the memory that the machine shares with this host (vgpu/wire/guest-file.h), mapped in
// their place. And memory of the program's own that it has registered: adopted by the arena, or of a file that it shares with others.
//
// Owned by the session's state. Any GPU's thread: `mutex` guards all of it, and leases are registered under it, because what
// another thread is registering a GPU must not be given work for. What is adopted is registered without it: the program does not
// know of it before the reply. A suspend drops the mappings; restore leases the same pieces again.
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

// How much of the host's memory a session may have pinned: leased or adopted pieces, which keep it until they end.
struct HostLimits {
  uint64_t bytes;                       // of all pieces
  uint64_t pieces;
  std::function<uint64_t()> available;  // what the machine can give at this moment without taking it from others

  // Seven eighths of this machine's memory.
  static HostLimits ofThisMachine();
};

// Maps what `file` has from `place` on in the place of whatever is at the address. False if the system refuses.
bool mapOver(uint64_t address, uint64_t bytes, int file, uint64_t place);
// Whether it is a file that has [place, place + bytes), the last page perhaps in part.
bool hasBytes(int file, uint64_t place, uint64_t bytes);

class HostLeases {
 public:
  explicit HostLeases(const Driver& driver, HostLimits limits = HostLimits::ofThisMachine())
      : driver(driver), limits(std::move(limits)) {}
  ~HostLeases();
  HostLeases(const HostLeases&) = delete;
  HostLeases& operator=(const HostLeases&) = delete;

  // Leases [address, address + bytes) of the host arena. The driver learns of it before a GPU next gets work, by
  // registerAll(): until then it costs nothing, and what the program has touched itself meanwhile costs less. Out of
  // memory where a limit is reached, or the machine has less available than this and what was leased before will still
  // take. endLease also gives its pages back to the system.
  CUresult lease(uint64_t address, uint64_t bytes, const MemoryFile& arena);
  // The same of the piece at `place` of the machine's memory that has `segment`, which ends after the lease. The memory is taken
  // at once. Already mapped if another session has any of it. The session that has it keeps it over a suspend, with what it holds.
  CUresult leasePiece(uint64_t address, uint64_t bytes, uint64_t place, const MemoryFile& segment, const MemoryFile& arena);
  CUresult endLease(uint64_t address, const MemoryFile& arena);
  // Without a lock: a program that was told of a lease sends its work afterwards.
  bool hasUnregistered() const { return unregistered.load(std::memory_order_acquire) != 0; }
  CUresult registerAll();
  // Ends them all; the arena's pages stay. CUDA's answer.
  CUresult endAll();

  // Maps that part of the host arena a second time, at an address of the program's, and registers it there, perhaps so that GPUs only
  // read it. Invalid value where the range is none or any of it is leased or adopted already, already mapped where this process has
  // something else at the address, out of memory as for lease().
  CUresult adopt(uint64_t address, uint64_t arenaAddress, uint64_t bytes, bool isReadOnly, const MemoryFile& arena);
  // The same of a file from `offset` on, whose descriptor stays the caller's. Invalid value where it has no such part, and, unless GPUs
  // only read it, where it is not in memory, as the driver answers of a file on disk.
  struct FilePart {
    int file;
    uint64_t offset;
    bool isReadOnly;
  };
  CUresult adoptFile(uint64_t address, uint64_t bytes, const FilePart& part, const MemoryFile& arena);
  CUresult release(uint64_t address, const MemoryFile& arena);

  // Whether [address, address + bytes) lies within one run of leased memory: what a session may name in a copy.
  bool owns(uint64_t address, uint64_t bytes) const;
  // Whether all of that part of the host arena is leased, and is the arena's own memory.
  bool ownsArena(uint64_t arenaAddress, uint64_t bytes) const;
  // The bytes of the lease at `address`; 0 if there is none.
  uint64_t bytesAt(uint64_t address) const;

 private:
  struct Lease {
    uint64_t bytes;
    uint64_t arenaAddress = 0;  // of the arena's bytes that are mapped there; 0: a file of the program's
    bool registered = false, isReadOnly = false;
    int machine = -1;    // the memory of a virtual machine, if a piece of it is mapped there instead,
    uint64_t place = 0;  // and which
  };
  CUresult end(std::map<uint64_t, Lease>::iterator lease, const MemoryFile& arena);
  CUresult registerLease(uint64_t address, const Lease& lease);
  // Whether a piece that takes `absentBytes` more from the machine is within the limits.
  bool hasRoom(uint64_t bytes, uint64_t absentBytes, const MemoryFile& arena);
  bool isFreePiece(const GuestLocks::Range& piece, const MemoryFile& segment) const;
  // A part of the arena is used, or free again.
  void take(const Lease& lease);
  void giveBack(const Lease& lease);
  // Of a lease that is taken, at an address of the program's; else it is given back.
  CUresult mapTaken(uint64_t address, const Lease& lease, int file, uint64_t place);
  CUresult mapAndRegister(uint64_t address, const Lease& lease, int file, uint64_t place);

  const Driver& driver;
  HostLimits limits;
  std::map<uint64_t, Lease> leases;             // by the address where the program has them
  std::map<uint64_t, uint64_t> usedArena;       // what they are of the host arena: address -> bytes
  std::map<uint64_t, uint64_t> usedPieces;      // and of a machine's memory: place -> bytes
  uint64_t leasedBytes = 0;
  uint64_t promisedBytes = 0;   // what registering will still take, at most: the program may have touched some meanwhile
  std::atomic<unsigned> unregistered{0};  // of leases
  mutable std::mutex mutex;
};

}  // namespace vgpu::stub
