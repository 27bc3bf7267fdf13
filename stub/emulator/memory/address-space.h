// The device's address space: what lies at each address, and where it is mapped in this process.
//
// Device addresses are numbers; their bytes are mapped at any address of this process (the host view), so no fixed host address is needed,
// and a device address used as a pointer by mistake faults. The exceptions that CUDA requires are host allocations and managed memory:
// their device address is their host address. So managed variables are mapped at their own addresses.
//
// Fixed ranges, chosen outside those that Linux, ASan and TSan use for the process itself:
//   0x200000000000  for cuMemAddressReserve with an address
//   0x300000000000  variables of modules, and cuMemAddressReserve without an address
//   0x340000000000  their managed variables
//   0x380000000000  heaps of kernels' malloc()
//   0x3f0000000000  handles that kernels use (device-graph-handles.h); nothing is mapped there
//   0x400000000000  for cuMemAddressReserve with an address, too
//   0x4c0000000000  plain device memory
//   0x500000000000  for variables, managed ones too, if the process places their blocks (va-heap.h)
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stub/emulator/driver/cuda-api.h"
#include "stub/emulator/driver/device.h"
#include "stub/emulator/memory/va-heap.h"
#include "stub/emulator/memory/va-range.h"
#include "stub/emulator/ptx/run/interpreter.h"

namespace vgpu::emulator::api {

constexpr uint64_t pieceBytes = uint64_t{2} << 20;  // the granularity of device memory, as on hardware
constexpr uint64_t hostPageBytes = 4096;
constexpr uint64_t everyDevice = ~uint64_t{0};  // as a mask of devices
constexpr uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Bytes mapped into this process. Unmapped with the last reference, so work in flight keeps what it uses.
class HostView {
 public:
  HostView(std::byte* base, uint64_t bytes, bool owned) : start(base), size(bytes), owned(owned) {}
  HostView(const HostView&) = delete;
  ~HostView();
  static std::shared_ptr<HostView> anonymous(uint64_t bytes);                      // zeroed
  static std::shared_ptr<HostView> anonymousAt(uint64_t address, uint64_t bytes);  // refuses if the address is in use
  static std::shared_ptr<HostView> ofFile(int fd, uint64_t offset, uint64_t bytes);
  static std::shared_ptr<HostView> borrowed(std::byte* base, uint64_t bytes);
  std::byte* base() const { return start; }
  uint64_t bytes() const { return size; }

 private:
  std::byte* start;
  uint64_t size;
  bool owned;
};

// cuMemCreate's object: device memory without an address, in a memfd so that it can be shared.
struct Physical {
  Physical(Device& device, const CUmemAllocationProp&, uint64_t bytes);
  Physical(Device& device, const CUmemAllocationProp&, uint64_t bytes, int fd);  // takes ownership of fd
  ~Physical();
  Physical(const Physical&) = delete;
  Device& device;
  const CUmemAllocationProp properties;
  const uint64_t bytes;
  int fd = -1;
  CUmemGenericAllocationHandle handle = 0;
  std::atomic<int> references{1};  // number of cuMemRelease calls still to come

  // A tile pool: memory for arrays, without an address.
  bool isTilePool() const { return (properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) != 0; }
  // A mapping of all of it in this process.
  std::shared_ptr<HostView> tiles();

 private:
  MemoryLease lease;
  std::once_flag viewed;
  std::shared_ptr<HostView> view;
};

enum class MappingKind { physical, plain, image, registered, hostAllocation, managed };

// A range of device addresses with bytes behind it.
struct Mapping {
  uint64_t base = 0, bytes = 0;
  MappingKind kind = MappingKind::plain;
  std::shared_ptr<HostView> view;
  std::byte* host = nullptr;  // address of `base` in this process
  Device* device = nullptr;
  Context* context = nullptr;         // the context that made it; null for physical memory
  uint64_t readers = 0, writers = 0;  // masks of devices; for plain memory its own device: access by peers depends on the context
  unsigned flags = 0;                 // of cuMemHostAlloc and similar calls
  uint64_t bufferId = 0;
  std::shared_ptr<Physical> physical;
  uint64_t physicalOffset = 0;
  bool noted = false;           // vgpuEmulatorNote() has named allocations in it
  CUmemoryPool pool = nullptr;  // from which it was allocated
  bool freeing = false;         // a stream will free it
  bool hostKind() const {
    return kind == MappingKind::registered || kind == MappingKind::hostAllocation || kind == MappingKind::managed;
  }
};

const char* makerOf(const Mapping&);  // the name of the driver call that made it

// A host view of a part of a device range. Ranges over several mappings have several, in address order.
struct Piece {
  std::byte* host;
  uint64_t bytes;
  std::shared_ptr<HostView> view;
};

// The mappings at one moment, as a flat table for fast search.
struct RegionTable {
  struct Row {
    uint64_t base, end;
    std::byte* host;
    uint64_t readers, writers;
    bool peerRules;  // plain memory: readable if the context has enabled access to the peer
  };
  std::vector<Row> rows;
  std::vector<std::shared_ptr<HostView>> views;
  const Row* find(uint64_t address) const;
};

// Managed variables are mapped at their device addresses, and thread sanitizer leaves few addresses free.
#if defined(__SANITIZE_THREAD__)
using ManagedHeap = VaRange;
constexpr uint64_t managedBase = 0x7ec000000000, managedBytes = uint64_t{64} << 30;
#else
using ManagedHeap = VaHeap;
constexpr uint64_t managedBase = 0x340000000000, managedBytes = uint64_t{4} << 40;
#endif

class AddressSpace {
 public:
  AddressSpace();

  // Reservations (cuMemAddressReserve). They only need a table entry.
  uint64_t reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted);
  void unreserve(uint64_t base, uint64_t bytes);
  bool reserved(uint64_t base, uint64_t bytes) const;

  VaHeap pieces;          // for device memory; includes reservations without an address
  ManagedHeap managed;    // for managed variables
  VaRange heaps, plain;   // ranges that assign addresses themselves

  // map() refuses with `taken` if the range overlaps a mapping.
  void map(Mapping mapping, CUresult taken);
  Mapping unmap(uint64_t base, MappingKind kind, CUresult missing);  // the mapping that begins at `base`
  // Marks the plain allocation that begins at `base` as being freed; refuses if there is none, or if it is marked already.
  Mapping beginFree(uint64_t base);
  std::vector<Mapping> unmapPhysical(uint64_t base, uint64_t bytes);  // removes whole mappings that fill the range exactly
  void setAccess(uint64_t base, uint64_t bytes, uint64_t device, CUmemAccess_flags access);
  std::optional<Mapping> find(uint64_t address) const;
  // Whether the address lies in a range that only device memory uses.
  bool isDeviceAddress(uint64_t address) const;
  std::optional<Mapping> findKind(uint64_t base, MappingKind kind) const;

  // The host views of [address, address + bytes); nothing unless all of it is mapped. Physical memory may span several mappings, and one of
  // `devices` must have access to it; any other range must lie in one allocation.
  std::optional<std::vector<Piece>> resolve(uint64_t address, uint64_t bytes, uint64_t devices = everyDevice) const;

  std::vector<Mapping> mappingsOf(const Context&) const;  // those that the context made

  // Allocations inside mappings, reported by a program that divides mappings itself.
  void note(uint64_t address, uint64_t bytes, std::string owner);
  void forget(uint64_t address);

  std::shared_ptr<const RegionTable> table() const;
  // For reports: describes what is at or near the address.
  std::string describe(uint64_t address) const;

 private:
  struct Note {
    uint64_t bytes;
    std::string owner;
  };
  struct Freed {
    uint64_t base, bytes;
    std::string owner;
  };
  using Mappings = std::map<uint64_t, Mapping>;
  struct Run {
    Mappings::iterator first, last;  // `last`: one past the run
  };
  Mappings::const_iterator holding(uint64_t address) const;
  Run physicalIn(uint64_t base, uint64_t bytes);  // mappings that fill the range exactly; refuses if there are none
  void addRows(RegionTable&, const Mapping&) const;
  void dropFreed(uint64_t base, uint64_t bytes);
  void rememberFreed(uint64_t base, uint64_t bytes, std::string owner);

  mutable std::mutex mutex;
  std::map<uint64_t, uint64_t> reservations;
  Mappings mappings;
  std::map<uint64_t, Note> notes;
  std::deque<Freed> recentlyFreed;  // the last few, for reports
  uint64_t nextBufferId = 1;
  mutable std::shared_ptr<const RegionTable> currentTable;  // null: must be rebuilt
};

// The memory that a kernel of `context` can access. Keeps every host view that it has returned alive.
class KernelMemory : public Memory {
 public:
  KernelMemory(const AddressSpace& space, uint64_t device, uint64_t peers)
      : space(space), device(device), peers(peers), currentTable(space.table()) {}
  std::optional<Region> find(uint64_t address) const override;
  std::string describe(uint64_t address) const override { return space.describe(address); }

 private:
  const AddressSpace& space;
  const uint64_t device, peers;
  std::shared_ptr<const RegionTable> currentTable;
  // For memory mapped while the kernel runs: later tables, searched if the first has no answer.
  mutable std::mutex mutex;
  mutable std::vector<std::shared_ptr<const RegionTable>> later;
};

}  // namespace vgpu::emulator::api
