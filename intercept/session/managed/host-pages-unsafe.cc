#include <sys/mman.h>

#include <utility>

#include "intercept/session/managed/host-pages.h"
#include "vgpu/base/memory-file.h"

namespace vgpu::client {

namespace {

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

int protectionOf(HostAccess access) {
  switch (access) {
    case HostAccess::none: return PROT_NONE;
    case HostAccess::read: return PROT_READ;
    default: return PROT_READ | PROT_WRITE;
  }
}

}  // namespace

std::optional<HostPages> HostPages::at(uint64_t address, uint64_t bytes) {
  MemoryFile file = MemoryFile::create("vgpu-managed", bytes);
  void* always = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.fd(), 0);
  if (always == MAP_FAILED) return std::nullopt;
  HostPages pages(address, bytes, static_cast<std::byte*>(always));
  void* seen = mmap(pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file.fd(), 0);
  if (seen == MAP_FAILED || seen != pointer(address)) {  // a kernel before 4.17 takes the address for a hint
    if (seen != MAP_FAILED) munmap(seen, bytes);
    munmap(std::exchange(pages.always, nullptr), bytes);
    return std::nullopt;
  }
  // A child would share the memory with its parent, and has no session that brings it up to date.
  madvise(seen, bytes, MADV_DONTFORK);
  madvise(always, bytes, MADV_DONTFORK);
  return pages;
}

HostPages::HostPages(HostPages&& other) noexcept
    : first(other.first), bytes(other.bytes), always(std::exchange(other.always, nullptr)) {}

HostPages::~HostPages() {
  if (always == nullptr) return;
  munmap(pointer(first), bytes);
  munmap(always, bytes);
}

bool HostPages::allow(uint64_t address, uint64_t count, HostAccess access) const {
  return mprotect(pointer(address), count, protectionOf(access)) == 0;
}

}  // namespace vgpu::client
