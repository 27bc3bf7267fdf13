#include "tools/worker/device-list.h"

#include "vgpu/base/fail.h"

namespace vgpu::stub {

std::vector<DeviceDescription> listDevices(const stub::Driver& driver) {
  stub::require(driver, driver.cuInit(0), "the driver cannot be initialized (cuInit)");
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
    devices.push_back({static_cast<uint32_t>(i), name, uuidText(uuid), bytes, 0, pageable != 0});
  }
  return devices;
}

}  // namespace vgpu::stub
