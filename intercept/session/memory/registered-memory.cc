// cudaHostRegister: the program's own memory, adopted by the host arena where its pages can be (page-adoption.h), so that the GPU
// and the worker access it at the same addresses. If they cannot be, it is registered all the same, and copied as pageable memory
// is.
#include <kj/debug.h>
#include <pthread.h>

#include <cstdlib>

#include "intercept/session/call.h"
#include "intercept/session/memory/page-adoption.h"
#include "intercept/session/wait.h"
#include "vgpu/base/ranges.h"

namespace vgpu::client {

namespace {

uint64_t firstPage(uint64_t address) { return address / hostPageBytes * hostPageBytes; }

// A child of fork() has a copy of the program's memory; it must not share adopted pages.
Memory* theMemory = nullptr;

}  // namespace

CUresult Memory::registerHost(Thread& thread, uint64_t address, uint64_t bytes, unsigned flags) {
  if (address == 0 || bytes == 0 || address + bytes < address) return CUDA_ERROR_INVALID_VALUE;
  if (inHostArena(address)) {  // pinned from the beginning
    auto allocation = findHost(address);
    const bool isOther = allocation && (allocation->kind == HostKind::managed || allocation->kind == HostKind::pooled);
    return isOther ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  if (inMappedArena(address) || thread.session.managed.find(address)) return CUDA_ERROR_INVALID_VALUE;
  AdoptedPages pages{firstPage(address), roundUp(address + bytes, hostPageBytes) - firstPage(address), 0};
  PageKind kind = kindOfPages(pages.address, pages.bytes);
  if (kind == PageKind::unmapped) return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard lock(mutex);
    auto next = registered.lower_bound(address + bytes);
    if (next != registered.begin() &&
        std::prev(next)->second.allocation.address + std::prev(next)->second.allocation.bytes > address)
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    Registered made{{address, bytes, flags, HostKind::registered, thread.owner()}, pages.address, pages.bytes, 0};
    // Two registrations may share a page; the second one's cannot be adopted again.
    bool shares = std::any_of(registered.begin(), registered.end(), [&](auto& other) {
      return other.second.firstPage < pages.address + pages.bytes &&
             pages.address < other.second.firstPage + other.second.pageBytes;
    });
    if (kind == PageKind::adoptable && !shares && sharesHost())
      if (auto place = host.placeLease(pages.bytes)) {
        host.reserveLease(*place, pages.bytes);
        pages.arenaAddress = made.arenaAddress = *place;
      }
    registered.emplace(address, made);
    anyRegistered.store(true, std::memory_order_relaxed);
  }
  if (pages.arenaAddress == 0) return CUDA_SUCCESS;
  CUresult result = adopt(thread, pages);
  if (result == CUDA_SUCCESS) {
    std::lock_guard lock(mutex);
    registered.at(address).isAdopted = true;
    return CUDA_SUCCESS;
  }
  std::lock_guard lock(mutex);
  host.settleLease(pages.arenaAddress, false);
  registered.at(address).arenaAddress = 0;
  // If the worker has another mapping at that address, or the system refuses, the memory stays as it was.
  return CUDA_SUCCESS;
}

// First the worker, so that nothing has to be undone if it refuses.
CUresult Memory::adopt(Thread& thread, const AdoptedPages& pages) {
  {
    Call<api::Cuda::HostAdoptParams> frame(thread.on(hostMemoryDevice), api::Method::hostAdopt);
    frame->setAddress(pages.address);
    frame->setArenaAddress(pages.arenaAddress);
    frame->setBytes(pages.bytes);
    frame.describe(pages.address, pages.bytes);
    if (CUresult error = frame.call()) return error;
  }
  static std::once_flag once;
  std::call_once(once, [&] {
    theMemory = this;
    pthread_atfork([] { theMemory->mutex.lock(); }, [] { theMemory->mutex.unlock(); },
                   [] {
                     // Those that are on their way into the arena or out of it too. A child that went on sharing its
                     // parent's memory would write into it.
                     for (auto& [address, entry] : theMemory->registered)
                       if (entry.arenaAddress != 0 &&
                           !returnPagesInChild({entry.firstPage, entry.pageBytes, entry.arenaAddress}))
                         std::abort();
                     theMemory->registered.clear();
                     theMemory->mutex.unlock();
                   });
  });
  if (adoptPages(pages, arenaFile)) return CUDA_SUCCESS;
  KJ_REQUIRE(returnPages(pages, arenaFile), "memory that is half registered cannot be put back", kj::hex(pages.address),
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

// Of an entry that no other thread is unregistering.
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
    if (!returnPages({entry.firstPage, entry.pageBytes, entry.arenaAddress}, arenaFile))
      return CUDA_ERROR_OPERATING_SYSTEM;
    result = release(thread, entry.firstPage);
  }
  std::lock_guard lock(mutex);
  if (entry.isAdopted) host.settleLease(entry.arenaAddress, false);
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

const Memory::Registered* Memory::registeredAt(uint64_t address) const {
  auto found = holding(registered, address, [](const Registered& entry) { return entry.allocation.bytes; });
  return found == registered.end() ? nullptr : &found->second;
}

}  // namespace vgpu::client
