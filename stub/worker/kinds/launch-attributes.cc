#include "stub/worker/kinds/launch-attributes.h"

#include <algorithm>

#include "stub/worker/cache-hints.h"

namespace vgpu::stub {

LaunchAttributes::LaunchAttributes(Execution& on, kj::ArrayPtr<const kj::byte> data, bool isCooperative) {
  Unpacked unpacked(on, api::described::CUlaunchAttribute, data);
  auto* first = unpacked.get<CUlaunchAttribute>();
  list.assign(first, first + unpacked.count());
  if (isCooperative) list.push_back({CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {}, {.cooperative = 1}});
  limitCacheHints(on, list);
}

CUresult LaunchAttributes::check() const {
  auto isValue = [](const CUlaunchAttribute& attribute) {
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:  // a hint: its addresses need not be the session's
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:  // its handle is an output
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: return true;
      default: return false;
    }
  };
  return std::ranges::all_of(list, isValue) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace vgpu::stub
