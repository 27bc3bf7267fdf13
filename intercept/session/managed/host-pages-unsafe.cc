#include <sys/mman.h>

#include <utility>

#include "intercept/session/managed/host-pages.h"
#include "vgpu/wire/arena.h"

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

std::optional<HostPages> HostPages::of(uint64_t address, uint64_t bytes, const MemoryFile& file, uint64_t offset) {
  const auto from = static_cast<off_t>(file.offset() + offset);
  void* always = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.fd(), from);
  if (always == MAP_FAILED) return std::nullopt;
  return HostPages(address, bytes, static_cast<std::byte*>(always));
}

std::optional<HostPages> HostPages::at(uint64_t address, uint64_t bytes) {
  MemoryFile file = MemoryFile::create("vgpu-managed", bytes);
  auto pages = of(address, bytes, file, 0);
  if (!pages) return std::nullopt;
  void* seen = mmap(pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file.fd(), 0);
  if (seen == MAP_FAILED) return std::nullopt;
  if (seen != pointer(address)) {  // a kernel before 4.17 takes the address as a hint
    munmap(seen, bytes);
    return std::nullopt;
  }
  PageWatch* watch = PageWatch::find();
  if (watch != nullptr && mprotect(seen, bytes, PROT_READ | PROT_WRITE) == 0 && watch->add(address, bytes, pages->always))
    pages->watch = watch;
  pages->take();
  return pages;
}

void HostPages::take() {
  isTaken = true;
  allow(first, bytes, HostAccess::none, HostAccess::none);
  // A child would share the memory with its parent, but has no session that keeps it up to date.
  madvise(pointer(first), bytes, MADV_DONTFORK);
  madvise(always, bytes, MADV_DONTFORK);
}

HostPages::HostPages(HostPages&& other) noexcept
    : first(other.first), bytes(other.bytes), always(std::exchange(other.always, nullptr)), isTaken(other.isTaken), watch(other.watch) {}

HostPages::~HostPages() {
  if (always == nullptr) return;
  if (isTaken) munmap(pointer(first), bytes);
  munmap(always, bytes);
}

bool HostPages::allow(uint64_t address, uint64_t count, HostAccess before, HostAccess access) const {
  if (watch != nullptr) return watch->allow(address, count, ours(address), before, access);
  return mprotect(pointer(address), count, protectionOf(access)) == 0;
}

void HostPages::allowAgain(uint64_t address, HostAccess access) const {
  const uint64_t page = address / hostPageBytes * hostPageBytes;
  if (watch != nullptr) watch->allowAgain(page, ours(page), access);
}

}  // namespace vgpu::client
