// Host memory that devices can access: registered, pinned and managed. Its device address is its host address.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "stub/emulator/driver/driver.h"

namespace vgpu::emulator::api {
namespace {

bool isMapped(const std::byte* base, uint64_t bytes) {
  uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), address = asNumber(base);
  uint64_t first = address / page * page, end = alignUp(address + bytes, page);
  return msync(asHostPointer(first), end - first, MS_ASYNC) == 0;  // ENOMEM if a page is not mapped
}

Mapping hostMapping(Context& context, std::shared_ptr<HostView> view, MappingKind kind, unsigned flags) {
  return Mapping{.base = asNumber(view->base()),
                 .bytes = view->bytes(),
                 .kind = kind,
                 .view = view,
                 .host = view->base(),
                 .device = &context.device,
                 .context = &context,
                 .readers = everyDevice,
                 .writers = everyDevice,
                 .flags = flags};
}

std::byte* allocateHost(Context& context, uint64_t bytes, MappingKind kind, unsigned flags) {
  require(bytes != 0);
  std::shared_ptr<HostView> view = HostView::anonymous(bytes);
  context.driver.space.map(hostMapping(context, view, kind, flags), CUDA_ERROR_UNKNOWN);
  return view->base();
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags) {
  return enterContext([&](Context& context) {
    constexpr unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                               CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    require(pointer != nullptr && bytes != 0 && (flags & ~known) == 0);
    if (flags & CU_MEMHOSTREGISTER_IOMEMORY) refuse(CUDA_ERROR_NOT_SUPPORTED);
    auto* base = static_cast<std::byte*>(pointer);
    require(asNumber(base) + bytes > asNumber(base));
    if (asNumber(base) >> 63 != 0) refuse(CUDA_ERROR_NOT_SUPPORTED);  // the kernel's half of the address space
    require(isMapped(base, bytes));
    Mapping mapping = hostMapping(context, HostView::borrowed(base, bytes), MappingKind::registered, flags);
    if (flags & CU_MEMHOSTREGISTER_READ_ONLY) mapping.writers = 0;
    context.driver.space.map(std::move(mapping), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  });
}

CUresult CUDAAPI cuMemHostUnregister(void* pointer) {
  return enterContext([&](Context& context) {
    require(pointer != nullptr);
    std::optional<Mapping> mapping = context.driver.space.findKind(asNumber(pointer), MappingKind::registered);
    if (!mapping) refuse(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    mapping->context->streams.waitForAll();
    context.driver.space.unmap(mapping->base, MappingKind::registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  });
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer, unsigned flags) {
  return enterContext([&](Context& context) {
    require(address != nullptr && pointer != nullptr && flags == 0);
    std::optional<Mapping> mapping = context.driver.space.find(asNumber(pointer));
    require(mapping && mapping->hostKind());
    *address = asNumber(pointer);
  });
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned* flags, void* pointer) {
  return enterContext([&](Context& context) {
    require(flags != nullptr && pointer != nullptr);
    std::optional<Mapping> mapping = context.driver.space.find(asNumber(pointer));
    require(mapping && mapping->kind != MappingKind::managed && mapping->hostKind());
    *flags = mapping->flags;
  });
}

CUresult CUDAAPI cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return enterContext([&](Context& context) {
    constexpr unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    require(pointer != nullptr && (flags & ~known) == 0);
    refuseDuringCapture(context.driver);
    // With unified addressing every pinned allocation is mapped, and cuMemHostGetFlags says so.
    *pointer = allocateHost(context, bytes, MappingKind::hostAllocation, flags | CU_MEMHOSTALLOC_DEVICEMAP);
  });
}

CUresult CUDAAPI cuMemAllocHost_v2(void** pointer, size_t bytes) { return cuMemHostAlloc(pointer, bytes, 0); }

CUresult CUDAAPI cuMemFreeHost(void* pointer) {
  return enterContext([&](Context& context) {
    require(pointer != nullptr);
    std::optional<Mapping> mapping = context.driver.space.findKind(asNumber(pointer), MappingKind::hostAllocation);
    refuseDuringCapture(context.driver);
    require(mapping.has_value());
    mapping->context->streams.waitForAll();
    context.driver.space.unmap(mapping->base, MappingKind::hostAllocation, CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return enterContext([&](Context& context) {
    require(address != nullptr && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
    refuseDuringCapture(context.driver);
    *address = asNumber(allocateHost(context, bytes, MappingKind::managed, flags));
  });
}
