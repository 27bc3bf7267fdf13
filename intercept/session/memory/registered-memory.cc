// cudaHostRegister: the host arena adopts pages of the program's own memory if possible (page-adoption.h), so that the GPU and the worker
// access it at the same addresses. Pages of a file, which other processes may have too, stay: the worker maps that file (given-files.h).
// Other memory is registered too, but copied like pageable memory.
#include <kj/debug.h>
#include <pthread.h>

#include <cstdlib>

#include "intercept/session/call.h"
#include "intercept/session/given-files.h"
#include "intercept/session/memory/mapped-file.h"
#include "intercept/session/memory/page-adoption.h"
#include "intercept/session/wait.h"
#include "vgpu/base/ranges.h"

namespace vgpu::client {

namespace {

constexpr uint64_t kernelHalf = uint64_t{1} << 63;  // addresses of the upper half are the kernel's

uint64_t firstPage(uint64_t address) { return address / hostPageBytes * hostPageBytes; }

// For the fork handlers: a child of fork() must have its own copy of adopted pages.
Memory* theMemory = nullptr;

}  // namespace

CUresult Memory::registerHost(Thread& thread, uint64_t address, uint64_t bytes, unsigned flags) {
  const uint64_t endPage = roundUp(address + bytes, hostPageBytes);  // wraps around beyond the last page, see below
  if (address == 0 || bytes == 0 || bytes - 1 > ~address) return CUDA_ERROR_INVALID_VALUE;
  if (address >= kernelHalf) return CUDA_ERROR_NOT_SUPPORTED;
  if (endPage < address) return CUDA_ERROR_INVALID_VALUE;
  if (inHostArena(address)) {  // already pinned
    auto allocation = findHost(address);
    const bool isOther = allocation && (allocation->kind == HostKind::managed || allocation->kind == HostKind::pooled);
    return isOther ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  if (inMappedArena(address) || thread.session.managed.find(address)) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t first = firstPage(address), pageBytes = endPage - first;
  const PageKind kind = kindOfPages(first, pageBytes);
  constexpr unsigned readOnly = CU_MEMHOSTREGISTER_READ_ONLY;
  const bool isReadOnly = (flags & readOnly) != 0;  // CUDA does not report this flag afterwards
  const bool arePagesReadOnly = kind == PageKind::readOnly || kind == PageKind::otherReadOnly;
  if (kind == PageKind::unmapped || (arePagesReadOnly && !isReadOnly)) return CUDA_ERROR_INVALID_VALUE;
  Registered made{{address, bytes, flags & ~readOnly, HostKind::registered, thread.owner()}, first, pageBytes, 0};
  made.isReadOnly = isReadOnly;
  made.arePagesReadOnly = arePagesReadOnly;
  const bool isAdoptable = kind == PageKind::adoptable || kind == PageKind::readOnly;
  if (!isAdoptable && sharesHost())
    if (auto mapped = findMappedFile(first, pageBytes)) {
      // For a file on disk, the GPU's accesses would not reach the file (docs/ipc.md).
      if (mapped->isWritable && !MemoryFile::isInMemory(mapped->file)) return CUDA_ERROR_INVALID_VALUE;
      const uint64_t unit = MemoryFile::pageBytes(mapped->file), before = mapped->offset % unit;
      made.firstPage -= before;
      made.pageBytes = roundUp(before + pageBytes, unit);
      made.fileOffset = mapped->offset - before;
      made.file = thread.session.files().give(kj::mv(mapped->file));
    }
  if (CUresult error = addRegistered(made, isAdoptable)) return error;
  if (made.arenaAddress == 0 && made.file == nullptr) return CUDA_SUCCESS;
  const CUresult result = made.file != nullptr ? askToAdopt(thread, made) : adopt(thread, made);
  std::lock_guard lock(mutex);
  Registered& entry = registered.at(address);
  entry.isAdopted = result == CUDA_SUCCESS;
  if (entry.isAdopted) return CUDA_SUCCESS;
  // If the worker has another mapping at that address, or the system refuses, the memory stays unadopted.
  if (entry.arenaAddress != 0) host.settleLease(entry.arenaAddress, false);
  entry.arenaAddress = 0;
  entry.file = nullptr;
  if (made.file == nullptr || result != CUDA_ERROR_INVALID_VALUE) return CUDA_SUCCESS;
  registered.erase(address);  // the file is on disk, or too short: natively an error too
  return result;
}

CUresult Memory::addRegistered(Registered& made, bool isAdoptable) {
  const uint64_t address = made.allocation.address;
  std::lock_guard lock(mutex);
  auto next = registered.lower_bound(address + made.allocation.bytes);
  if (next != registered.begin() &&
      std::prev(next)->second.allocation.address + std::prev(next)->second.allocation.bytes > address)
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  // Two registrations may share a page; the second registration's pages are then not adopted.
  const bool shares = std::any_of(registered.begin(), registered.end(), [&](auto& other) {
    return other.second.firstPage < made.firstPage + made.pageBytes && made.firstPage < other.second.firstPage + other.second.pageBytes;
  });
  const bool mayAdopt = !shares && sharesHost();
  if (!mayAdopt) made.file = nullptr;
  if (isAdoptable && mayAdopt)
    if (auto place = host.placeLease(made.pageBytes)) {
      host.reserveLease(*place, made.pageBytes);
      made.arenaAddress = *place;
    }
  registered.emplace(address, made);
  anyRegistered.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult Memory::askToAdopt(Thread& thread, const Registered& entry) {
  Call<api::Cuda::HostAdoptParams> frame(thread.on(hostMemoryDevice), api::Method::hostAdopt);
  frame->setAddress(entry.firstPage);
  frame->setArenaAddress(entry.arenaAddress);
  frame->setBytes(entry.pageBytes);
  frame->setIsReadOnly(entry.isReadOnly);
  if (entry.file != nullptr) {
    setName(frame, entry.file->name);
    frame->setOffset(entry.fileOffset);
  }
  frame.describe(entry.firstPage, entry.pageBytes);
  return frame.call();
}

// The worker first, so that nothing has to be undone if it refuses.
CUresult Memory::adopt(Thread& thread, const Registered& entry) {
  if (CUresult error = askToAdopt(thread, entry)) return error;
  const AdoptedPages pages = entry.pages();
  static std::once_flag once;
  std::call_once(once, [&] {
    theMemory = this;
    pthread_atfork([] { theMemory->mutex.lock(); }, [] { theMemory->mutex.unlock(); },
                   [] {
                     // Also pages that are just being adopted or returned. A child that still shared its parent's memory would write to it.
                     for (auto& [address, entry] : theMemory->registered)
                       if (entry.arenaAddress != 0 && !returnPagesInChild(entry.pages(), theMemory->arenaFile)) std::abort();
                     theMemory->registered.clear();
                     theMemory->mutex.unlock();
                   });
  });
  if (adoptPages(pages, arenaFile)) return CUDA_SUCCESS;
  KJ_REQUIRE(returnPages(pages, arenaFile), "partly registered memory cannot be restored", kj::hex(pages.address),
             pages.bytes);
  release(thread, pages.address);
  return CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult Memory::release(Thread& thread, uint64_t firstPage) {
  Call<api::Cuda::HostReleaseParams> frame(thread.on(hostMemoryDevice), api::Method::hostRelease);
  frame->setAddress(firstPage);
  return frame.call();
}

CUresult Memory::unregisterHost(Thread& thread, uint64_t address) {
  {
    std::lock_guard lock(mutex);
    auto found = registered.find(address);
    if (found == registered.end() && (address == 0 || registeredAt(address) != nullptr)) return CUDA_ERROR_INVALID_VALUE;
    if (found == registered.end() || found->second.isEnding) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    found->second.isEnding = true;
  }
  CUresult result = endRegistration(thread, address);
  if (result == CUDA_SUCCESS) return result;
  std::lock_guard lock(mutex);
  if (auto found = registered.find(address); found != registered.end()) found->second.isEnding = false;
  return result;
}

// The caller has marked the entry, so no other thread unregisters it.
CUresult Memory::endRegistration(Thread& thread, uint64_t address) {
  unsigned device;
  {
    std::lock_guard lock(mutex);
    device = handleDevice(registered.at(address).allocation.context);
  }
  if (CUresult error = synchronizeHostMemory(thread, device)) return error;
  Registered entry;
  {
    std::lock_guard lock(mutex);
    entry = registered.at(address);
  }
  CUresult result = CUDA_SUCCESS;
  if (entry.isAdopted) {
    if (entry.arenaAddress != 0 && !returnPages(entry.pages(), arenaFile)) return CUDA_ERROR_OPERATING_SYSTEM;
    result = release(thread, entry.firstPage);
  }
  std::lock_guard lock(mutex);
  if (entry.arenaAddress != 0) host.settleLease(entry.arenaAddress, false);
  registered.erase(address);
  anyRegistered.store(!registered.empty(), std::memory_order_relaxed);
  return result;
}

std::optional<HostAllocation> Memory::findRegistered(uint64_t address, bool adoptedOnly) const {
  if (!anyRegistered.load(std::memory_order_relaxed)) return std::nullopt;
  std::lock_guard lock(mutex);
  const Registered* found = registeredAt(address);
  if (found == nullptr || (adoptedOnly && !found->isAdopted)) return std::nullopt;
  return found->allocation;
}

bool Memory::isRegisteredReadOnly(uint64_t address) const {
  if (!anyRegistered.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex);
  const Registered* found = registeredAt(address);
  return found != nullptr && found->isReadOnly;
}

bool Memory::isWritableByHost(uint64_t address, uint64_t bytes) const {
  if (!anyRegistered.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex);
  const Registered* found = registeredAt(address);
  return found != nullptr && !found->isAdopted && !found->isReadOnly &&
         bytes <= found->allocation.bytes - (address - found->allocation.address);
}

const Memory::Registered* Memory::registeredAt(uint64_t address) const {
  auto found = holding(registered, address, [](const Registered& entry) { return entry.allocation.bytes; });
  return found == registered.end() ? nullptr : &found->second;
}

}  // namespace vgpu::client
