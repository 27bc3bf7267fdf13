#include "checkpoint/device-identity.h"

#include <fmt/format.h>

#include "stub/worker/execution.h"
#include "vgpu/base/fail.h"

namespace vgpu::checkpoint {

namespace {

Device describe(stub::SessionState& on, int device) {
  auto& driver = on.driver;
  auto check = [&](CUresult result) { stub::require(driver, result, "describing the device"); };
  char name[256] = "";
  CUuuid uuid{};
  size_t bytes = 0;
  int major = 0, minor = 0;
  check(driver.cuDeviceGetName(name, sizeof name, device));
  check(driver.cuDeviceGetUuid_v2(&uuid, device));
  check(driver.cuDeviceTotalMem_v2(&bytes, device));
  check(driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  check(driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  Device described{.name = name, .memoryBytes = bytes, .capability = static_cast<uint64_t>(major * 10 + minor)};
  for (char byte : uuid.bytes) described.uuid += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  if (!on.isUsed(static_cast<unsigned>(device)) || on.isEnded(static_cast<unsigned>(device))) return described;  // no time there
  described.clock = on.select(static_cast<unsigned>(device)).eventTimes.now();
  return described;
}

}  // namespace

std::vector<Device> devicesOf(stub::SessionState& on) {
  std::vector<Device> devices;
  for (unsigned device = 0; device < on.deviceCount(); ++device)
    devices.push_back(describe(on, static_cast<int>(device)));
  return devices;
}

void requireSameDevices(const std::vector<Device>& seen, const std::vector<Device>& here) {
  if (here.size() < seen.size())
    fail(fmt::format("the program has seen {} GPUs, and this worker has {}: resume it where there are as many",
                     seen.size(), here.size()));
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i].name != here[i].name || seen[i].capability != here[i].capability)
      fail(fmt::format(
          "the program's GPU {} is a {} (compute capability {}.{}), and here it would be a {} ({}.{}): resume it "
          "on the same model",
          i, seen[i].name, seen[i].capability / 10, seen[i].capability % 10, here[i].name, here[i].capability / 10,
          here[i].capability % 10));
}

}  // namespace vgpu::checkpoint
