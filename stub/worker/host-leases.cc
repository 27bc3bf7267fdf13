#include "stub/worker/host-leases.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>
#include <vector>

#include "vgpu/api/wire-value.h"
#include "vgpu/base/helper-threads.h"
#include "vgpu/base/machine-memory.h"
#include "vgpu/base/ranges.h"

namespace vgpu::stub {

namespace {

// Allocates the missing pages. One thread allocates 1.3 GB/s of pages in a virtual machine (docs/facts.md), and the driver would use only
// one. A failure shows when the driver registers the memory.
void populate(std::span<std::byte> memory) {
  constexpr size_t piece = 16 * MiB;
  size_t pieces = (memory.size() + piece - 1) / piece;
  size_t threads = std::min<size_t>({pieces, std::max(1u, std::thread::hardware_concurrency() / 2), 8});
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < pieces;) {
      auto part = memory.subspan(i * piece, std::min(piece, memory.size() - i * piece));
      madvise(part.data(), part.size(), MADV_POPULATE_WRITE);
    }
  };
  if (threads != 0) runWithHelpers(threads - 1, work);
}

// Whether [address, address + bytes) are whole pages of the host arena.
bool isInArena(uint64_t address, uint64_t bytes) {
  return bytes != 0 && bytes % 4096 == 0 && address % 4096 == 0 && bytes <= hostArenaBytes && inHostArena(address) &&
         address - hostArenaBase <= hostArenaBytes - bytes;
}

// Whether the program may have memory of its own at these addresses, outside the session's ranges.
bool isProgramsOwn(uint64_t address, uint64_t bytes) {
  constexpr uint64_t lowest = 64 * KiB, highest = uint64_t{1} << 47;
  return address % hostPageBytes == 0 && address >= lowest && bytes <= highest && address <= highest - bytes && !inHostArena(address) &&
         !inDeviceArenas(address) && !inMappedArena(address);
}

// How many bytes of that part of a file have no memory allocated yet.
uint64_t absentFileBytes(int file, uint64_t offset, uint64_t bytes) {
  uint64_t absent = 0, at = offset, end = at + bytes;
  while (at < end) {
    off_t data = lseek(file, static_cast<off_t>(at), SEEK_DATA);
    uint64_t next = data < 0 ? end : std::min(end, static_cast<uint64_t>(data));  // no data after `at`: ENXIO
    absent += next - at;
    if (next == end) break;
    off_t hole = lseek(file, data, SEEK_HOLE);
    at = hole < 0 ? end : static_cast<uint64_t>(hole);
  }
  return absent;
}

uint64_t absentBytes(const MemoryFile& arena, uint64_t arenaAddress, uint64_t bytes) {
  return absentFileBytes(arena.fd(), arenaAddress - hostArenaBase, bytes);
}

// The same for a mapping at `address`, because lseek() would move the position of a shared file.
uint64_t absentMappedBytes(uint64_t address, uint64_t bytes) {
  std::vector<unsigned char> resident(bytes / hostPageBytes);
  KJ_SYSCALL(mincore(fromWire<void*>(address), bytes, resident.data()));
  return static_cast<uint64_t>(std::ranges::count_if(resident, [](auto one) { return (one & 1) == 0; })) * hostPageBytes;
}

void punch(int file, uint64_t place, uint64_t bytes) {
  constexpr int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  KJ_SYSCALL(fallocate(file, hole, static_cast<off_t>(place), static_cast<off_t>(bytes)));
}

// False if the file system is full. Without allocation, any process that touches a page with no memory left would be killed, the virtual
// machine included.
bool allocate(int file, const GuestLocks::Range& range) {
  return fallocate(file, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(range.place), static_cast<off_t>(range.bytes)) == 0;
}

}  // namespace

bool mapOver(uint64_t address, uint64_t bytes, int file, uint64_t place) {
  void* mapped = mmap(fromWire<void*>(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file,
                      static_cast<off_t>(place));
  if (mapped == MAP_FAILED) return false;
  madvise(mapped, bytes, MADV_DONTDUMP);
  madvise(mapped, bytes, MADV_HUGEPAGE);  // like the whole arena (Mapping)
  return true;
}

bool hasBytes(int file, uint64_t place, uint64_t bytes) {
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const uint64_t end = roundUp(static_cast<uint64_t>(status.st_size), hostPageBytes);
  return place <= end && bytes <= end - place;
}

HostLimits HostLimits::ofThisMachine() {
  auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)), pageBytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {.bytes = pages / 8 * 7 * pageBytes, .pieces = 64 * 1024, .available = [] { return machineMemory().availableBytes; }};
}

HostLeases::~HostLeases() { endAll(); }

CUresult HostLeases::endAll() {
  std::lock_guard lock(mutex);
  CUresult result = CUDA_SUCCESS;
  for (auto& [address, lease] : leases) {
    CUresult error = lease.registered ? driver.cuMemHostUnregister(fromWire<void*>(address)) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) result = error;
    if (lease.arenaAddress != address) munmap(fromWire<void*>(address), lease.bytes);
  }
  leases.clear();  // the pieces' mappings end with the arena's
  usedArena.clear();
  usedPieces.clear();
  leasedBytes = promisedBytes = 0;
  unregistered = 0;
  return result;
}

CUresult HostLeases::registerAll() {
  std::lock_guard lock(mutex);
  for (auto& [address, lease] : leases) {
    if (lease.registered) continue;
    populate({fromWire<std::byte*>(address), lease.bytes});
    if (CUresult error = registerLease(address, lease)) return error;
    lease.registered = true;
    --unregistered;
  }
  promisedBytes = 0;
  return CUDA_SUCCESS;
}

CUresult HostLeases::registerLease(uint64_t address, const Lease& lease) {
  const unsigned reads = lease.isReadOnly ? CU_MEMHOSTREGISTER_READ_ONLY : 0;
  return driver.cuMemHostRegister_v2(fromWire<void*>(address), lease.bytes,
                                     CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE | reads);
}

bool HostLeases::hasRoom(uint64_t bytes, uint64_t absent, const MemoryFile& arena) {
  if (leases.size() >= limits.pieces || leasedBytes > limits.bytes || bytes > limits.bytes - leasedBytes) return false;
  uint64_t available = limits.available();
  if (absent > available) return false;
  if (promisedBytes <= available - absent) return true;
  promisedBytes = 0;
  for (auto& [address, lease] : leases)
    if (!lease.registered && lease.machine < 0) promisedBytes += absentBytes(arena, lease.arenaAddress, lease.bytes);
  return promisedBytes <= available - absent;
}

void HostLeases::take(const Lease& lease) {
  if (lease.arenaAddress != 0) usedArena.emplace(lease.arenaAddress, lease.bytes);
  if (lease.machine >= 0) usedPieces.emplace(lease.place, lease.bytes);
  leasedBytes += lease.bytes;
}

void HostLeases::giveBack(const Lease& lease) {
  if (lease.arenaAddress != 0) usedArena.erase(lease.arenaAddress);
  if (lease.machine >= 0) usedPieces.erase(lease.place);
  leasedBytes -= lease.bytes;
}

CUresult HostLeases::lease(uint64_t address, uint64_t bytes, const MemoryFile& arena) {
  std::lock_guard lock(mutex);
  if (!isInArena(address, bytes) || !isFree(usedArena, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t absent = absentBytes(arena, address, bytes);
  if (!hasRoom(bytes, absent, arena)) return CUDA_ERROR_OUT_OF_MEMORY;
  const Lease lease{.bytes = bytes, .arenaAddress = address};
  take(lease);
  leases.emplace(address, lease);
  promisedBytes += absent;
  ++unregistered;
  return CUDA_SUCCESS;
}

// Whole granules in the second half of the machine's memory, outside the session's own slot: the slot's lock belongs to the same open file,
// so findOthers() would not see it.
bool HostLeases::isFreePiece(const GuestLocks::Range& piece, const MemoryFile& segment) const {
  struct stat status;
  KJ_SYSCALL(fstat(segment.fd(), &status));
  if (!segment.isPiece() || !GuestLayout::isPiece(piece, static_cast<uint64_t>(status.st_size))) return false;
  const GuestLocks::Range slot = GuestLayout::slot(GuestLayout::slotOf(segment.offset()));
  return (piece.end() <= slot.place || piece.place >= slot.end()) && isFree(usedPieces, piece.place, piece.bytes);
}

CUresult HostLeases::leasePiece(uint64_t address, uint64_t bytes, uint64_t place, const MemoryFile& segment,
                                const MemoryFile& arena) {
  const GuestLocks::Range piece{place, bytes};
  std::lock_guard lock(mutex);
  if (!isInArena(address, bytes) || !isFree(usedArena, address, bytes) || !isFreePiece(piece, segment))
    return CUDA_ERROR_INVALID_VALUE;
  const GuestLocks locks(segment.fd(), GuestLocks::Side::host);
  if (locks.findOthers(piece)) return CUDA_ERROR_ALREADY_MAPPED;
  const bool wasOurs = locks.findAny(piece).has_value();  // the session was suspended, or another worker of it still has the piece
  if (!locks.tryLock(piece)) return CUDA_ERROR_ALREADY_MAPPED;
  if (!wasOurs) punch(segment.fd(), place, bytes);
  const bool isMapped = mapOver(address, bytes, segment.fd(), place);
  if (!isMapped || !hasRoom(bytes, absentMappedBytes(address, bytes), arena) || !allocate(segment.fd(), piece)) {
    mapOver(address, bytes, arena.fd(), address - hostArenaBase);
    if (!wasOurs) {
      punch(segment.fd(), place, bytes);
      locks.unlock(piece);
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const Lease lease{.bytes = bytes, .arenaAddress = address, .machine = segment.fd(), .place = place};
  take(lease);
  leases.emplace(address, lease);
  ++unregistered;
  return CUDA_SUCCESS;
}

CUresult HostLeases::endLease(uint64_t address, const MemoryFile& arena) {
  std::lock_guard lock(mutex);
  auto found = leases.find(address);
  if (found == leases.end() || found->second.arenaAddress != address) return CUDA_ERROR_INVALID_VALUE;
  return end(found, arena);
}

CUresult HostLeases::end(std::map<uint64_t, Lease>::iterator found, const MemoryFile& arena) {
  auto [address, lease] = *found;
  CUresult error = lease.registered ? driver.cuMemHostUnregister(fromWire<void*>(address)) : CUDA_SUCCESS;
  if (!lease.registered) --unregistered;
  if (lease.arenaAddress != address) munmap(fromWire<void*>(address), lease.bytes);
  if (lease.machine >= 0) {
    const bool isBack = mapOver(address, lease.bytes, arena.fd(), address - hostArenaBase);
    KJ_REQUIRE(isBack, "the system refuses a mapping", lease.bytes);
    punch(lease.machine, lease.place, lease.bytes);
    GuestLocks(lease.machine, GuestLocks::Side::host).unlock({lease.place, lease.bytes});
  } else if (lease.arenaAddress != 0) {
    punch(arena.fd(), lease.arenaAddress - hostArenaBase, lease.bytes);
  }
  giveBack(lease);
  leases.erase(found);
  return error;
}

CUresult HostLeases::adopt(uint64_t address, uint64_t arenaAddress, uint64_t bytes, bool isReadOnly, const MemoryFile& arena) {
  if (!isInArena(arenaAddress, bytes) || !isProgramsOwn(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const Lease lease{.bytes = bytes, .arenaAddress = arenaAddress, .registered = true, .isReadOnly = isReadOnly};
  {
    std::lock_guard lock(mutex);
    if (!isFree(usedArena, arenaAddress, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (!hasRoom(bytes, absentBytes(arena, arenaAddress, bytes), arena)) return CUDA_ERROR_OUT_OF_MEMORY;
    take(lease);
  }
  return mapTaken(address, lease, arena.fd(), arenaAddress - hostArenaBase);
}

CUresult HostLeases::adoptFile(uint64_t address, uint64_t bytes, const FilePart& part, const MemoryFile& arena) {
  const uint64_t unit = MemoryFile::pageBytes(part.file);
  if (bytes == 0 || bytes % unit != 0 || part.offset % unit != 0 || !isProgramsOwn(address, bytes) ||
      !hasBytes(part.file, part.offset, bytes) || !(part.isReadOnly || MemoryFile::isInMemory(part.file)))
    return CUDA_ERROR_INVALID_VALUE;
  const Lease lease{.bytes = bytes, .registered = true, .isReadOnly = part.isReadOnly};
  {
    std::lock_guard lock(mutex);
    if (!hasRoom(bytes, absentFileBytes(part.file, part.offset, bytes), arena)) return CUDA_ERROR_OUT_OF_MEMORY;
    take(lease);
  }
  return mapTaken(address, lease, part.file, part.offset);
}

CUresult HostLeases::mapTaken(uint64_t address, const Lease& lease, int file, uint64_t place) {
  CUresult error = mapAndRegister(address, lease, file, place);
  std::lock_guard lock(mutex);
  if (error == CUDA_SUCCESS)
    leases.emplace(address, lease);
  else
    giveBack(lease);
  return error;
}

CUresult HostLeases::mapAndRegister(uint64_t address, const Lease& lease, int file, uint64_t place) {
  // MAP_FIXED_NOREPLACE: the program chooses the address, so it must not replace a mapping of this process.
  const bool canWrite = (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDWR;
  const int protection = lease.isReadOnly && !canWrite ? PROT_READ : PROT_READ | PROT_WRITE;
  void* mapped = mmap(fromWire<void*>(address), lease.bytes, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, file, static_cast<off_t>(place));
  if (mapped == MAP_FAILED) return CUDA_ERROR_ALREADY_MAPPED;
  CUresult error = mapped == fromWire<void*>(address) ? registerLease(address, lease) : CUDA_ERROR_ALREADY_MAPPED;
  if (error != CUDA_SUCCESS) munmap(mapped, lease.bytes);
  return error;
}

CUresult HostLeases::release(uint64_t address, const MemoryFile& arena) {
  std::lock_guard lock(mutex);
  auto found = leases.find(address);
  if (found == leases.end() || found->second.arenaAddress == address) return CUDA_ERROR_INVALID_VALUE;
  return end(found, arena);
}

bool HostLeases::owns(uint64_t address, uint64_t bytes) const {
  std::lock_guard lock(mutex);
  return isCovered(leases, address, bytes);
}

// A session with pieces of a machine's memory can share no other host memory.
bool HostLeases::ownsArena(uint64_t arenaAddress, uint64_t bytes) const {
  std::lock_guard lock(mutex);
  return isInArena(arenaAddress, bytes) && usedPieces.empty() && isCovered(leases, arenaAddress, bytes);
}

uint64_t HostLeases::bytesAt(uint64_t address) const {
  std::lock_guard lock(mutex);
  auto found = leases.find(address);
  return found == leases.end() ? 0 : found->second.bytes;
}

}  // namespace vgpu::stub
