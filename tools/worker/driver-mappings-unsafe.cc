// The addresses of the driver's own mappings in a worker.
//
// A module's variables lie in memory whose addresses the driver gets from mmap() without a hint, and the program knows these addresses:
// they must be the same in the worker in which the session continues. The system returns the highest free addresses, so they would depend
// on every thread, allocation and image of the process. This executable therefore exports its own mmap(), which the driver's library finds
// before the C library's; the driver's mappings get the lowest free addresses of a part of the address space that nothing else uses. Their
// addresses then depend only on the driver's requests, which are the same for the same calls.
//
// Observed with driver 580.159: it maps more than it needs and unmaps the parts before and behind an aligned piece.
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "stub/driver/driver-addresses.h"

namespace vgpu::stub {
namespace {

struct DriverLibrary {
  uint64_t codeBegin = 0, codeEnd = 0;  // address range of the driver's library, once it is loaded

  DriverLibrary() {
    dl_iterate_phdr(
        [](dl_phdr_info* library, size_t, void* found) {
          if (std::strstr(library->dlpi_name, "libcuda.so") == nullptr) return 0;
          static_cast<DriverLibrary*>(found)->note(*library);
          return 1;
        },
        this);
  }
  void note(const dl_phdr_info& library) {
    for (int i = 0; i < library.dlpi_phnum; ++i) {
      auto& part = library.dlpi_phdr[i];
      if (part.p_type != PT_LOAD) continue;
      uint64_t begin = library.dlpi_addr + part.p_vaddr;
      codeBegin = codeEnd == 0 ? begin : std::min(codeBegin, begin);
      codeEnd = std::max(codeEnd, begin + part.p_memsz);
    }
  }
  bool isAt(const void* caller) const {
    auto address = reinterpret_cast<uint64_t>(caller);
    return address >= codeBegin && address < codeEnd;
  }
};

// Null before the driver's library is loaded. Never destroyed: the driver unmaps memory until the process has ended.
DriverLibrary* driver() {
  static std::atomic<DriverLibrary*> known{nullptr};
  if (DriverLibrary* already = known.load(std::memory_order_acquire)) return already;
  auto* made = new DriverLibrary;
  DriverLibrary* none = nullptr;
  if (made->codeEnd != 0 && known.compare_exchange_strong(none, made, std::memory_order_acq_rel)) return made;
  delete made;
  return none;
}

void* mapByKernel(void* hint, size_t bytes, int protection, int flags, int file, off_t offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, hint, bytes, protection, flags, file, offset));
}
int unmapByKernel(void* address, size_t bytes) { return static_cast<int>(syscall(SYS_munmap, address, bytes)); }

// If the address is occupied, the driver gets one that the system chooses, and a resume detects the difference.
void* mapForDriver(size_t bytes, int protection, int flags, int file, off_t offset) {
  auto& addresses = DriverAddresses::ofProcess();
  addresses.noteAsked();
  if (uint64_t address = addresses.take(bytes)) {
    auto* wanted = reinterpret_cast<void*>(address);
    void* mapped = mapByKernel(wanted, bytes, protection, flags | MAP_FIXED_NOREPLACE, file, offset);
    if (mapped == wanted) return mapped;
    if (mapped != MAP_FAILED) unmapByKernel(mapped, bytes);
    addresses.give(address, bytes);
  }
  return mapByKernel(nullptr, bytes, protection, flags, file, offset);
}

}  // namespace
}  // namespace vgpu::stub

extern "C" {

#pragma GCC visibility push(default)

void* mmap(void* hint, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  vgpu::stub::DriverLibrary* driver = (flags & MAP_FIXED) == 0 ? vgpu::stub::driver() : nullptr;
  if (driver != nullptr && driver->isAt(__builtin_return_address(0))) {
    if (hint == nullptr) return vgpu::stub::mapForDriver(bytes, protection, flags, file, offset);
    vgpu::stub::DriverAddresses::ofProcess().noteMapping();
  }
  return vgpu::stub::mapByKernel(hint, bytes, protection, flags, file, offset);
}

void* mmap64(void* hint, size_t bytes, int protection, int flags, int file, off_t offset) noexcept
    __attribute__((alias("mmap")));

int munmap(void* address, size_t bytes) noexcept {
  int result = vgpu::stub::unmapByKernel(address, bytes);
  auto begin = reinterpret_cast<uint64_t>(address);
  if (result == 0 && vgpu::stub::driver() != nullptr && vgpu::stub::DriverAddresses::ofProcess().contains(begin))
    vgpu::stub::DriverAddresses::ofProcess().give(begin, vgpu::roundUp(bytes, 4 * vgpu::KiB));
  return result;
}

#pragma GCC visibility pop
}
