#include "tools/worker/device-list.h"

#include <fmt/format.h>

#include "vgpu/base/fail.h"

namespace vgpu::stub {
namespace {

// As nvidia-smi prints it: GPU-8-4-4-4-12.
std::string describe(const CUuuid& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", dash ? "-" : "", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

std::vector<DeviceDescription> listDevices(const stub::Driver& driver) {
  stub::require(driver, driver.cuInit(0), "the driver does not start (cuInit)");
  int count = 0;
  stub::require(driver, driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (count == 0) fail("the driver finds no device");
  std::vector<DeviceDescription> devices;
  for (int i = 0; i < count; ++i) {
    CUdevice device;
    char name[256] = {};
    CUuuid uuid{};
    size_t bytes = 0;
    int pageable = 0;
    stub::require(driver, driver.cuDeviceGet(&device, i), "cuDeviceGet");
    stub::require(driver, driver.cuDeviceGetName(name, sizeof(name), device), "cuDeviceGetName");
    stub::require(driver, driver.cuDeviceGetUuid_v2(&uuid, device), "cuDeviceGetUuid");
    stub::require(driver, driver.cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem");
    stub::require(driver, driver.cuDeviceGetAttribute(&pageable, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device),
                  "cuDeviceGetAttribute");
    devices.push_back({static_cast<uint32_t>(i), name, describe(uuid), bytes, 0, pageable != 0});
  }
  return devices;
}

}  // namespace vgpu::stub
