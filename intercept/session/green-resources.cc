#include "intercept/session/green-resources.h"

#include <algorithm>
#include <cstring>

#include "intercept/session/call.h"

namespace vgpu::client {

namespace {

struct OwnBytes {
  static constexpr uint64_t ours = 0x3163727365727076;  // "vpresrc1": marks the client's structures
  uint64_t mark = 0;
  ResourceOrigin origin;
  uint32_t part = 0;  // which part of the split; the remainder is the last
  Multiprocessors has;
};
static_assert(sizeof(OwnBytes) <= sizeof(CUdevResource::_internal_padding));

CUdevResource resourceOf(const ResourceOrigin& origin, uint32_t part, const Multiprocessors& has) {
  CUdevResource resource{};
  resource.type = has.count == 0 ? CU_DEV_RESOURCE_TYPE_INVALID : CU_DEV_RESOURCE_TYPE_SM;
  const OwnBytes own{OwnBytes::ours, origin, part, has};
  std::memcpy(resource._internal_padding, &own, sizeof own);
  resource.sm = {has.count, has.least, has.alignment};
  return resource;
}

// The content of the program's structure; nothing if the client has not made it.
std::optional<OwnBytes> ownBytesOf(const CUdevResource& resource) {
  OwnBytes own;
  std::memcpy(&own, resource._internal_padding, sizeof own);
  return own.mark == OwnBytes::ours ? std::optional(own) : std::nullopt;
}

// CUDA's error if the structure is not an SM resource of the session.
CUresult read(Thread& thread, const CUdevResource& resource, OwnBytes& own) {
  if (resource.type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  auto found = ownBytesOf(resource);
  if (!found || !thread.session.hasDevice(static_cast<CUdevice>(found->origin.device)))
    return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  // An ended green context has no resource that could be split.
  if (found->origin.parent != 0 && !thread.session.handles.isLive(api::Kind::GREEN_CONTEXT, found->origin.parent))
    return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  own = *found;
  return CUDA_SUCCESS;
}

// Combines the resources of a descriptor: a whole device or green context includes its parts, and a part given twice counts once.
CUresult gather(ResourceDescriptorState& all, const OwnBytes& own) {
  const bool isFirst = all.multiprocessors == 0;
  if (!isFirst && (own.origin.device != all.origin.device || own.origin.parent != all.origin.parent))
    return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  if (!isFirst && all.origin.split == 0) return CUDA_SUCCESS;
  if (isFirst || own.origin.split == 0) {
    all.origin = own.origin;
    all.parts.clear();
    all.multiprocessors = 0;
  }
  if (own.origin.split != all.origin.split) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  if (std::ranges::find(all.parts, own.part) != all.parts.end()) return CUDA_SUCCESS;
  if (own.origin.split != 0) all.parts.push_back(own.part);
  all.multiprocessors += own.has.count;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult GreenResources::askDevice(Thread& thread, unsigned device, Multiprocessors& has) {
  {
    std::lock_guard lock(mutex);
    if (devices[device]) return has = *devices[device], CUDA_SUCCESS;
  }
  Call<api::Cuda::GreenResourceParams> frame(thread.on(device), api::Method::greenResource);
  if (CUresult error = frame.call()) return error;
  auto reported = frame.results<api::Cuda::GreenResourceResults>();
  has = {reported.getMultiprocessors(), reported.getLeast(), reported.getAlignment()};
  std::lock_guard lock(mutex);
  devices[device] = has;
  return CUDA_SUCCESS;
}

CUresult GreenResources::ofDevice(Thread& thread, unsigned device, CUdevResource* resource, CUdevResourceType type) {
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  Multiprocessors has;
  if (CUresult error = askDevice(thread, device, has)) return error;
  *resource = resourceOf({.device = device}, 0, has);
  return CUDA_SUCCESS;
}

CUresult GreenResources::ofGreen(Thread& thread, uint64_t green, CUdevResource* resource, CUdevResourceType type) {
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  auto* state = thread.session.handles.find<api::Kind::GREEN_CONTEXT>(green);
  if (state == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *resource = resourceOf({.parent = green, .device = handleDevice(green)}, 0, state->has);
  return CUDA_SUCCESS;
}

CUresult GreenResources::ofContext(Thread& thread, uint64_t context, CUdevResource* resource, CUdevResourceType type) {
  auto* state = thread.session.handles.find<api::Kind::CONTEXT>(context);
  if (state == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const uint64_t green = state->green.load(std::memory_order_relaxed);
  return green == 0 ? ofDevice(thread, state->device(), resource, type) : ofGreen(thread, green, resource, type);
}

CUresult GreenResources::split(Thread& thread, CUdevResource* result, unsigned* count, const CUdevResource* input,
                               CUdevResource* remaining, unsigned flags, unsigned least) {
  constexpr uint32_t numbers = 3;  // for each part
  OwnBytes whole;
  if (CUresult bad = read(thread, *input, whole)) return bad;
  if (whole.origin.split != 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;  // parts can be split only once a green context has them
  if (least > whole.has.count) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  if (result != nullptr && *count == 0) return CUDA_ERROR_INVALID_VALUE;
  const uint32_t groups = result == nullptr ? whole.has.count : std::min(*count, whole.has.count);
  Call<api::Cuda::GreenSplitParams> frame(thread.on(whole.origin.device), api::Method::greenSplit);
  frame->setParent(whole.origin.parent);
  frame->setFlags(flags);
  frame->setLeast(least);
  frame->setGroups(groups);
  if (CUresult error = frame.call()) return error;
  auto reported = frame.results<api::Cuda::GreenSplitResults>();
  auto parts = reported.getParts();
  if (parts.size() < numbers) return CUDA_ERROR_UNKNOWN;
  const auto made = static_cast<uint32_t>(parts.size()) / numbers - 1;
  ResourceOrigin origin = whole.origin;
  origin.split = splits.fetch_add(1, std::memory_order_relaxed) + 1;
  origin.flags = flags;
  origin.least = least;
  origin.groups = groups;
  for (uint32_t part = 0; part <= made; ++part) {
    CUdevResource* place = part == made ? remaining : result == nullptr ? nullptr : result + part;
    if (place == nullptr || (result != nullptr && part < made && part >= *count)) continue;
    const uint32_t at = part * numbers;
    *place = resourceOf(origin, part == made ? groups : part, {parts[at], parts[at + 1], parts[at + 2]});
  }
  *count = made;
  return CUDA_SUCCESS;
}

CUresult GreenResources::describe(Thread& thread, CUdevResourceDesc* descriptor, const CUdevResource* resources, unsigned count) {
  if (count == 0) return CUDA_ERROR_INVALID_VALUE;
  ResourceDescriptorState described;
  for (unsigned i = 0; i < count; ++i) {
    OwnBytes own;
    if (CUresult bad = read(thread, resources[i], own)) return bad;
    if (CUresult bad = gather(described, own)) return bad;
  }
  HandleTable& handles = thread.session.handles;
  uint64_t handle = handles.reserve(api::Kind::RESOURCE_DESCRIPTOR, described.origin.device);
  handles.publish<api::Kind::RESOURCE_DESCRIPTOR>(handle, 0, [&](ResourceDescriptorState& state) {
    state.origin = described.origin;
    state.parts = std::move(described.parts);
    state.multiprocessors = described.multiprocessors;
  });
  *descriptor = fromWire<CUdevResourceDesc>(handle);
  return CUDA_SUCCESS;
}

CUresult GreenResources::describeDevice(Thread& thread, unsigned device, ResourceDescriptorState& descriptor) {
  Multiprocessors has;
  if (CUresult error = askDevice(thread, device, has)) return error;
  descriptor.origin = {.device = device};
  descriptor.multiprocessors = has.count;
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
