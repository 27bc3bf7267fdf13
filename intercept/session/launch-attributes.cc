#include "intercept/session/launch-attributes.h"

#include <algorithm>
#include <cstring>

#include "intercept/session/graph/edge-ports.h"
#include "intercept/session/handle-table.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::client {

namespace {

using Value = CUlaunchAttributeValue;

constexpr AttributeKind kinds[LaunchAttributes::kindCount] = {
    {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, sizeof(Value::accessPolicyWindow), true},
    {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, sizeof(Value::clusterDim), true},
    {CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, sizeof(Value::clusterSchedulingPolicyPreference), true},
    {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, sizeof(Value::programmaticStreamSerializationAllowed), false},
    {CU_LAUNCH_ATTRIBUTE_PRIORITY, sizeof(Value::priority), true},
    {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, sizeof(Value::memSyncDomainMap), true},
    {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, sizeof(Value::memSyncDomain), true},
    {CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, sizeof(Value::preferredClusterDim), true},
    {CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, sizeof(Value::sharedMemCarveout), true},
    {CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, sizeof(Value::nvlinkUtilCentricScheduling), true},
};

}  // namespace

const AttributeKind* findAttributeKind(CUlaunchAttributeID id) {
  auto found = std::ranges::find(kinds, id, &AttributeKind::id);
  return found == std::end(kinds) ? nullptr : found;
}

CUresult checkValue(CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE) {
    const unsigned policy = value.clusterSchedulingPolicyPreference;
    return policy > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }
  bool isCluster = id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION || id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
  const auto& cluster = value.clusterDim;  // and preferredClusterDim, which has the same layout
  const bool isNone = cluster.x == 0 && cluster.y == 0 && cluster.z == 0;  // as the driver treats it
  return isCluster && !isNone && (cluster.x == 0 || cluster.y == 0 || cluster.z == 0) ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

CUlaunchAttribute attributeOf(const AttributeKind& kind, const CUlaunchAttributeValue& value) {
  CUlaunchAttribute made;
  std::memset(&made, 0, sizeof made);
  made.id = kind.id;
  std::memcpy(&made.value, &value, kind.bytes);
  return made;
}

const CUlaunchAttribute* findAttribute(std::span<const CUlaunchAttribute> attributes, CUlaunchAttributeID id) {
  auto found = std::ranges::find(attributes, id, &CUlaunchAttribute::id);
  return found == attributes.end() ? nullptr : &*found;
}

std::optional<ClusterSize> clusterIn(std::span<const CUlaunchAttribute> attributes) {
  auto* found = findAttribute(attributes, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  if (found == nullptr) return std::nullopt;
  const auto& cluster = found->value.clusterDim;
  if (cluster.x == 0) return std::nullopt;  // none, see checkValue()
  return ClusterSize{cluster.x, cluster.y, cluster.z};
}

void LaunchAttributes::set(const CUlaunchAttribute& attribute) {
  auto earlier = std::find_if(list.begin(), list.begin() + count, [&](auto& each) { return each.id == attribute.id; });
  if (earlier == list.begin() + count) ++count;
  *earlier = attribute;
}

// Source: cuda.h, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT.
CUresult LaunchAttributes::checkRecords(const HandleTable& handles) const {
  for (auto& record : records()) {
    auto* event = handles.find<api::Kind::EVENT>(toWire(record.event));
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((event->flags & (CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)) != CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

bool LaunchAttributes::recordsOutside() const {
  return std::ranges::any_of(records(), [](auto& record) { return record.flags == CU_EVENT_RECORD_EXTERNAL; });
}

bool LaunchAttributes::mayOverlap() const {
  auto* found = findAttribute(values(), CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  return found != nullptr && found->value.programmaticStreamSerializationAllowed != 0;
}

CUresult LaunchAttributes::read(const CUlaunchConfig& config, bool& cooperative) {
  if (config.numAttrs != 0 && config.attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto record = [&](CUevent event, int flags, const CUgraphEdgeData& edge) {
    if (recordCount == recorded.size()) return CUDA_ERROR_INVALID_VALUE;
    recorded[recordCount++] = {event, static_cast<unsigned>(flags), edge};
    return CUDA_SUCCESS;
  };
  for (auto& [id, pad, value] : std::span(config.attrs, config.numAttrs)) {
    CUresult result = checkValue(id, value);
    if (auto* kind = findAttributeKind(id)) {
      set(attributeOf(*kind, value));
    } else if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      cooperative = value.cooperative != 0;
    } else if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
      auto& wanted = value.programmaticEvent;
      result = record(wanted.event, wanted.flags, wanted.triggerAtBlockStart != 0 ? programmaticOrderEdge : programmaticEdge);
    } else if (id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
      result = record(value.launchCompletionEvent.event, value.launchCompletionEvent.flags, orderEdge);
    } else if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
      askedNode = &value;
    } else if (id != CU_LAUNCH_ATTRIBUTE_IGNORE) {
      result = CUDA_ERROR_INVALID_VALUE;  // valid for streams only, or not at all
    }
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
