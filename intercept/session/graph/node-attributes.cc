#include "intercept/session/graph/node-attributes.h"

#include <algorithm>
#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/graph/device-node.h"
#include "intercept/session/launch-attributes.h"

namespace vgpu::client {

namespace {

// Before compute capability 10 the driver has no such node attribute.
bool hasPreferredClusters(const Session& session, const KernelWork& work) {
  return session.devices[handleDevice(work.function)].attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 10;
}

}  // namespace

CUresult getAttribute(const KernelWork& work, CUlaunchAttributeID id, CUlaunchAttributeValue& value) {
  value = {};
  auto* kind = findAttributeKind(id);
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
    value.cooperative = work.shape.cooperative;
  } else if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
    value = DeviceNode::describe(work);
  } else if (kind == nullptr || !kind->ofNodes) {
    return CUDA_ERROR_INVALID_VALUE;
  } else if (auto* set = findAttribute(work.attributes, id)) {
    value = set->value;
  }
  return CUDA_SUCCESS;
}

CUresult setAttribute(Thread& thread, KernelWork& work, CUlaunchAttributeID id, CUlaunchAttributeValue& value) {
  if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) return DeviceNode::make(thread, work, value);
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) return work.shape.cooperative = value.cooperative != 0, CUDA_SUCCESS;
  auto* kind = findAttributeKind(id);
  if (kind == nullptr || !kind->ofNodes) return CUDA_ERROR_INVALID_VALUE;
  if (id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION && !hasPreferredClusters(thread.session, work)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult bad = checkValue(id, value)) return bad;
  std::erase_if(work.attributes, [&](auto& each) { return each.id == id; });
  work.attributes.push_back(attributeOf(*kind, value));
  return CUDA_SUCCESS;
}

void takePriority(const Session& session, uint64_t stream, KernelWork& work) {
  auto* state = session.handles.find<api::Kind::STREAM>(stream);
  const int32_t priority = state == nullptr ? 0 : state->priority.load(std::memory_order_relaxed);
  if (priority == 0 || findAttribute(work.attributes, CU_LAUNCH_ATTRIBUTE_PRIORITY) != nullptr) return;
  CUlaunchAttributeValue value{};
  value.priority = priority;
  work.attributes.push_back(attributeOf(*findAttributeKind(CU_LAUNCH_ATTRIBUTE_PRIORITY), value));
}

bool hasSameAttributes(const KernelWork& a, const KernelWork& b) {
  return a.attributes.size() == b.attributes.size() && std::ranges::all_of(a.attributes, [&](auto& each) {
    auto* found = findAttribute(b.attributes, each.id);
    return found != nullptr && std::memcmp(found, &each, sizeof each) == 0;
  });
}

}  // namespace vgpu::client
