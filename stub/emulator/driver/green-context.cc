#include "stub/emulator/driver/green-context.h"

#include <algorithm>
#include <cstring>

#include "stub/emulator/driver/driver.h"

namespace vgpu::emulator::api {
namespace {

std::atomic<uint64_t> nextSplit{1}, nextGreenId{1};

// The bytes of a CUdevResource that are private to the driver.
struct OwnBytes {
  static constexpr uint64_t ours = 0x65637275736f7265;
  uint64_t mark = ours;
  uint64_t split = 0;  // the split that made it; 0: none
  std::array<uint64_t, mostProcessors / 64> mask{};
  int device = 0;
  uint32_t alignment = 0;  // of the resource that was split
};
static_assert(sizeof(OwnBytes) <= sizeof(CUdevResource::_internal_padding));

// The least number of multiprocessors of a part, and the multiple to which it is rounded (cuda.h, "Green Contexts").
struct Granule {
  uint32_t least, alignment;
};
Granule granuleOf(const Device& device) {
  if (device.architecture() >= 90) return {8, 8};
  return device.architecture() >= 80 ? Granule{4, 2} : Granule{2, 2};
}
constexpr Granule alone{2, 2};  // without co-scheduling: pairs of multiprocessors, which share resources in a processing cluster

Processors allOf(const Device& device) {
  Processors all;
  for (int i = 0; i < device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); ++i) all.set(static_cast<size_t>(i));
  return all;
}

CUdevResource resourceOf(int device, const Processors& processors, Granule granule, uint64_t split) {
  CUdevResource resource{};
  if (processors.none()) return resource;
  OwnBytes own{.split = split, .device = device, .alignment = granule.alignment};
  for (size_t i = 0; i < processors.size(); ++i)
    if (processors[i]) own.mask[i / 64] |= uint64_t{1} << i % 64;
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  std::memcpy(resource._internal_padding, &own, sizeof own);
  resource.sm = {static_cast<unsigned>(processors.count()), granule.least, granule.alignment};
  return resource;
}

OwnBytes read(const CUdevResource& resource, Processors& processors) {
  if (resource.type != CU_DEV_RESOURCE_TYPE_SM) refuse(CUDA_ERROR_INVALID_RESOURCE_TYPE);
  OwnBytes own;
  std::memcpy(&own, resource._internal_padding, sizeof own);
  if (own.mark != OwnBytes::ours) refuse(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  for (size_t i = 0; i < processors.size(); ++i) processors[i] = (own.mask[i / 64] >> i % 64 & 1) != 0;
  return own;
}

void checkAsked(const CUdevResource* resource, CUdevResourceType type) {
  require(resource != nullptr);
  require(type == CU_DEV_RESOURCE_TYPE_SM, CUDA_ERROR_INVALID_RESOURCE_TYPE);
}

// Takes the lowest `count` out of `from`.
Processors takeLowest(Processors& from, size_t count) {
  Processors taken;
  for (size_t i = 0; count > 0 && i < from.size(); ++i) {
    if (!from[i]) continue;
    taken.set(i);
    from.reset(i);
    --count;
  }
  return taken;
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuDeviceGetDevResource(CUdevice ordinal, CUdevResource* resource, CUdevResourceType type) {
  return enterDriver([&](Driver& driver) {
    const Device& device = driver.device(ordinal);
    checkAsked(resource, type);
    *resource = resourceOf(ordinal, allOf(device), granuleOf(device), 0);
  });
}

CUresult CUDAAPI cuCtxGetDevResource(CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  return enterDriver([&](Driver& driver) {
    const Device& device = driver.contexts.get(handle)->device;
    checkAsked(resource, type);
    *resource = resourceOf(device.ordinal(), allOf(device), granuleOf(device), 0);
  });
}

CUresult CUDAAPI cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource* resource, CUdevResourceType type) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<GreenContext> green = driver.greenContexts.get(handle);
    checkAsked(resource, type);
    const Device& device = green->context->device;
    *resource = resourceOf(device.ordinal(), green->processors, granuleOf(device), 0);
  });
}

CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups, const CUdevResource* input,
                                             CUdevResource* remaining, unsigned flags, unsigned least) {
  return enterDriver([&](Driver& driver) {
    require(groups != nullptr && input != nullptr);
    Processors rest;
    const OwnBytes whole = read(*input, rest);
    if (whole.split != 0) refuse(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    require(least <= rest.count(), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    require(result == nullptr || *groups != 0);
    const bool isAlone = (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
    const Granule granule = isAlone ? alone : granuleOf(driver.device(whole.device));
    const size_t size = (std::max(least, granule.least) + granule.alignment - 1) / granule.alignment * granule.alignment;
    const size_t most = rest.count() / size;
    const auto made = static_cast<unsigned>(result == nullptr ? most : std::min<size_t>(*groups, most));
    const uint64_t split = nextSplit++;
    for (unsigned i = 0; i < made; ++i) {
      const Processors taken = takeLowest(rest, size);
      if (result != nullptr) result[i] = resourceOf(whole.device, taken, granule, split);
    }
    if (remaining != nullptr) *remaining = resourceOf(whole.device, rest, granule, split);
    *groups = made;
  });
}

CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc* handle, CUdevResource* resources, unsigned count) {
  return enterDriver([&](Driver& driver) {
    require(handle != nullptr && resources != nullptr && count != 0);
    auto description = std::make_shared<ResourceDescription>();
    uint64_t split = 0;  // the split of the parts so far
    for (unsigned i = 0; i < count; ++i) {
      Processors processors;
      const OwnBytes own = read(resources[i], processors);
      const bool isOther = own.split != 0 && split != 0 && own.split != split;
      if (isOther || (i != 0 && own.device != description->device)) refuse(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
      if (own.split != 0) split = own.split;
      description->device = own.device;
      description->processors |= processors;
    }
    *handle = driver.resourceDescriptions.add(description);
  });
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx* handle, CUdevResourceDesc descriptor, CUdevice ordinal, unsigned flags) {
  return enterDriver([&](Driver& driver) -> CUresult {
    require(handle != nullptr && flags == CU_GREEN_CTX_DEFAULT_STREAM);
    std::shared_ptr<ResourceDescription> description = descriptor ? driver.resourceDescriptions.get(descriptor) : nullptr;
    const Device& device = driver.device(ordinal);
    require(!description || description->device == ordinal, CUDA_ERROR_INVALID_DEVICE);
    CUcontext primary = nullptr;
    if (CUresult refused = cuDevicePrimaryCtxRetain(&primary, ordinal)) return refused;
    auto green = std::make_shared<GreenContext>();
    green->context = driver.contexts.get(primary);
    green->processors = description ? description->processors : allOf(device);
    green->id = nextGreenId++;
    *handle = driver.greenContexts.add(green);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx handle) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<GreenContext> green = driver.greenContexts.remove(handle);
    green->alive = false;
    return cuDevicePrimaryCtxRelease_v2(green->context->device.ordinal());
  });
}

CUresult CUDAAPI cuGreenCtxGetId(CUgreenCtx handle, unsigned long long* id) {
  return enterDriver([&](Driver& driver) {
    require(id != nullptr);
    *id = driver.greenContexts.get(handle)->id;
  });
}

CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream* handle, CUgreenCtx greenHandle, unsigned flags, int priority) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<GreenContext> green = driver.greenContexts.get(greenHandle);
    require(handle != nullptr && flags == CU_STREAM_NON_BLOCKING);
    green->context->check();
    std::shared_ptr<Stream> stream = green->context->streams.create(flags, std::clamp(priority, greatestPriority, leastPriority));
    stream->green = green;
    *handle = driver.streams.add(stream);
  });
}

CUresult CUDAAPI cuStreamGetGreenCtx(CUstream handle, CUgreenCtx* green) {
  return enterContext([&](Context& context) {
    require(green != nullptr);
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    *green = stream->green ? stream->green->handle : nullptr;
  });
}
