// Attributes of streams. They change no results, and here no speed: they are stored and returned.
#include <algorithm>
#include <cstring>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/stream.h"

namespace vgpu::emulator::api {
namespace {

CUlaunchAttributeValue initialValue(const Stream& stream, CUlaunchAttributeID attribute) {
  CUlaunchAttributeValue value{};
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      std::memset(&value.syncPolicy, 0xff, sizeof value.syncPolicy);  // what the driver (580.159) returns if none has been set
      break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value.priority = stream.priority;
      break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      value.memSyncDomainMap = {.default_ = 0, .remote = 1};
      break;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      break;
    default:
      refuse(CUDA_ERROR_INVALID_VALUE);
  }
  return value;
}

void check(const Context& context, CUlaunchAttributeID attribute, const CUlaunchAttributeValue& value) {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: {
      auto& window = value.accessPolicyWindow;
      auto most = static_cast<uint64_t>(context.device.attribute(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE));
      require(window.num_bytes <= most && window.hitRatio >= 0 && window.hitRatio <= 1);
      require(window.missProp != CU_ACCESS_PROPERTY_PERSISTING);
      break;
    }
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      require(value.syncPolicy >= CU_SYNC_POLICY_AUTO && value.syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC);
      break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      require(value.memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
      break;
    default:
      break;
  }
}

std::mutex attributesMutex;  // for all streams; a leaf

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  return enterContext([&](Context& context) {
    require(value != nullptr);
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    *value = initialValue(*stream, attribute);
    std::lock_guard lock(attributesMutex);
    if (auto set = stream->attributes.find(attribute); set != stream->attributes.end()) *value = set->second;
  });
}

CUresult CUDAAPI cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  return enterContext([&](Context& context) {
    require(value != nullptr);
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    initialValue(*stream, attribute);
    check(context, attribute, *value);
    std::lock_guard lock(attributesMutex);
    CUlaunchAttributeValue& kept = stream->attributes[attribute] = *value;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
      stream->priority = kept.priority = std::clamp(value->priority, greatestPriority, leastPriority);
  });
}

CUresult CUDAAPI cuStreamCopyAttributes(CUstream to, CUstream from) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Stream> target = streamOf(context, to), source = streamOf(context, from);
    std::lock_guard lock(attributesMutex);
    target->attributes = source->attributes;
    target->priority = source->priority.load();
  });
}
