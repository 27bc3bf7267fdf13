#include "tools/worker/process-record.h"

#include <fmt/format.h>
#include <unistd.h>

#include "stub/driver/driver-addresses.h"
#include "tools/common/memory-usage.h"

namespace vgpu::stub {

namespace {

// A context flag that the driver sets by itself at some time; contexts behave the same with and without it (docs/facts.md).
constexpr unsigned setByDriver = CU_CTX_LMEM_RESIZE_TO_MAX;

ProcessRecord::DefaultStream defaultStreamOf(const Driver& driver) {
  auto valueOf = [&](CUstreamAttrID attribute) {
    CUstreamAttrValue value{};
    if (driver.cuStreamGetAttribute(nullptr, attribute, &value) != CUDA_SUCCESS) value = {};
    return value;
  };
  const auto domains = valueOf(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP).memSyncDomainMap;
  return {valueOf(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow.num_bytes,
          valueOf(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy,
          valueOf(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority,
          {domains.default_, domains.remote},
          valueOf(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain};
}

}  // namespace

void ProcessRecord::addCurrent(const Driver& driver) {
  OfDevice found;
  size_t total = 0;
  require(driver, driver.cuMemGetInfo_v2(&found.freeBytes, &total), "cuMemGetInfo");
  for (size_t i = 0; i < found.limits.size(); ++i)
    if (driver.cuCtxGetLimit(&found.limits[i], static_cast<CUlimit>(i)) != CUDA_SUCCESS) found.limits[i] = 0;  // unsupported here
  found.defaultStream = defaultStreamOf(driver);
  require(driver, driver.cuCtxGetCacheConfig(&found.cacheConfig), "cuCtxGetCacheConfig");
  require(driver, driver.cuCtxGetFlags(&found.flags), "cuCtxGetFlags");
  devices.push_back(found);
}

void ProcessRecord::addProcess() {
  GpuMemory usage = gpuMemory();
  auto own = usage.byProcess.find(getpid());
  if (usage.known && own != usage.byProcess.end()) gpuBytes = own->second;
  mappedBytes = DriverAddresses::ofProcess().takenBytes();
}

// The system's figure for this process alone is preferred to the free memory of a GPU, which others use too.
std::string ProcessRecord::memoryLeftSince(const ProcessRecord& fresh) const {
  auto more = [](uint64_t now, uint64_t before) { return now > before ? now - before : 0; };
  if (gpuBytes && fresh.gpuBytes) {
    uint64_t left = more(*gpuBytes, *fresh.gpuBytes);
    return left > 0 ? fmt::format("{} bytes of GPU memory", left) : "";
  }
  for (size_t i = 0; i < devices.size(); ++i)
    if (uint64_t left = more(fresh.devices[i].freeBytes, devices[i].freeBytes); left > 0)
      return fmt::format("{} bytes of device {} that are no longer free", left, i);
  return "";
}

std::string ProcessRecord::leftSince(const ProcessRecord& fresh) const {
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].limits != fresh.devices[i].limits) return fmt::format("a changed limit of device {}", i);
    if (devices[i].cacheConfig != fresh.devices[i].cacheConfig) return fmt::format("a changed cache configuration of device {}", i);
    if (devices[i].defaultStream != fresh.devices[i].defaultStream)
      return fmt::format("changed attributes of device {}'s default stream", i);
    const unsigned flags = devices[i].flags & ~setByDriver, freshFlags = fresh.devices[i].flags & ~setByDriver;
    if (flags != freshFlags) return fmt::format("changed flags of device {}'s context: {:#x}, in a new one {:#x}", i, flags, freshFlags);
  }
  if (mappedBytes > fresh.mappedBytes) return fmt::format("{} bytes of the driver's mappings", mappedBytes - fresh.mappedBytes);
  return memoryLeftSince(fresh);
}

}  // namespace vgpu::stub
