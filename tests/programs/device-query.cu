// The device's properties: printed, consistent between the calls that return them, and the same after the pause, because a virtual GPU
// keeps its identity on whichever node it is resumed.
#include "program.h"

#include <cstring>

int attribute(cudaDeviceAttr which) {
  int value = -1;
  CHECK(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

cudaDeviceProp properties() {
  cudaDeviceProp got;
  CHECK(cudaGetDeviceProperties(&got, 0));
  return got;
}

void print(const cudaDeviceProp& device) {
  std::printf("%s: compute %d.%d, %d multiprocessors, %zu MiB, PCI %04x:%02x:%02x, UUID ", device.name, device.major,
              device.minor, device.multiProcessorCount, device.totalGlobalMem >> 20, device.pciDomainID,
              device.pciBusID, device.pciDeviceID);
  for (char byte : device.uuid.bytes) std::printf("%02x", static_cast<unsigned char>(byte));
  std::printf("\n");
}

bool propertiesAgree(const cudaDeviceProp& device) {
  const struct {
    const char* what;
    long long property;
    cudaDeviceAttr attribute;
  } rows[] = {
      {"major", device.major, cudaDevAttrComputeCapabilityMajor},
      {"minor", device.minor, cudaDevAttrComputeCapabilityMinor},
      {"multiprocessors", device.multiProcessorCount, cudaDevAttrMultiProcessorCount},
      {"warp size", device.warpSize, cudaDevAttrWarpSize},
      {"threads a block", device.maxThreadsPerBlock, cudaDevAttrMaxThreadsPerBlock},
      {"threads a multiprocessor", device.maxThreadsPerMultiProcessor, cudaDevAttrMaxThreadsPerMultiProcessor},
      {"blocks a multiprocessor", device.maxBlocksPerMultiProcessor, cudaDevAttrMaxBlocksPerMultiprocessor},
      {"block x", device.maxThreadsDim[0], cudaDevAttrMaxBlockDimX},
      {"block z", device.maxThreadsDim[2], cudaDevAttrMaxBlockDimZ},
      {"grid x", device.maxGridSize[0], cudaDevAttrMaxGridDimX},
      {"grid y", device.maxGridSize[1], cudaDevAttrMaxGridDimY},
      {"shared memory a block", (long long)device.sharedMemPerBlock, cudaDevAttrMaxSharedMemoryPerBlock},
      {"shared memory at most", (long long)device.sharedMemPerBlockOptin, cudaDevAttrMaxSharedMemoryPerBlockOptin},
      {"registers a block", device.regsPerBlock, cudaDevAttrMaxRegistersPerBlock},
      {"constant memory", (long long)device.totalConstMem, cudaDevAttrTotalConstantMemory},
      {"L2 cache", device.l2CacheSize, cudaDevAttrL2CacheSize},
      {"unified addressing", device.unifiedAddressing, cudaDevAttrUnifiedAddressing},
      {"mapped host memory", device.canMapHostMemory, cudaDevAttrCanMapHostMemory},
      {"cooperative launch", device.cooperativeLaunch, cudaDevAttrCooperativeLaunch},
      {"PCI bus", device.pciBusID, cudaDevAttrPciBusId},
      {"PCI device", device.pciDeviceID, cudaDevAttrPciDeviceId},
  };
  bool ok = true;
  for (const auto& row : rows) {
    const int value = attribute(row.attribute);
    if (value == row.property) continue;
    std::fprintf(stderr, "%s: the property is %lld, the attribute %d\n", row.what, row.property, value);
    ok = false;
  }
  return ok & EXPECT(device.warpSize == 32) & EXPECT(device.multiProcessorCount > 0) & EXPECT(device.major >= 7) &
         EXPECT(device.maxThreadsPerBlock >= 1024) & EXPECT(device.unifiedAddressing == 1) &
         EXPECT(std::strlen(device.name) > 0);
}

bool versionsAndMemoryMakeSense(const cudaDeviceProp& device) {
  int driver = 0, runtime = 0, devices = 0, current = -1, found = -1;
  char bus[32];
  size_t free = 0, total = 0;
  CHECK(cudaDriverGetVersion(&driver));
  CHECK(cudaRuntimeGetVersion(&runtime));
  CHECK(cudaGetDeviceCount(&devices));
  CHECK(cudaGetDevice(&current));
  CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
  CHECK(cudaDeviceGetByPCIBusId(&found, bus));
  CHECK(cudaMemGetInfo(&free, &total));
  std::printf("driver %d, runtime %d, %d device(s), %s, %zu of %zu MiB free\n", driver, runtime, devices, bus,
              free >> 20, total >> 20);
  return EXPECT(driver >= runtime) & EXPECT(runtime == CUDART_VERSION) & EXPECT(devices >= 1) & EXPECT(current == 0) &
         EXPECT(found == 0) & EXPECT(0 < free && free <= total) & EXPECT(total == device.totalGlobalMem);
}

// The device is found by its PCI bus id, also with an eight-digit domain (NVML's form), without the function, and without a zero domain.
bool isFoundByItsPlace() {
  char bus[32];
  CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
  const std::string whole = bus;
  const size_t domain = whole.find(':'), function = whole.rfind('.');
  std::vector<std::string> forms = {whole, "0000" + whole, whole.substr(0, function)};
  if (std::stoi(whole.substr(0, domain), nullptr, 16) == 0) forms.push_back(whole.substr(domain + 1));
  bool ok = true;
  for (const std::string& form : forms) {
    int found = -1;
    ok &= EXPECT_ERROR(cudaDeviceGetByPCIBusId(&found, form.c_str()), cudaSuccess) & EXPECT(found == 0);
  }
  return ok;
}

int main() {
  const cudaDeviceProp before = properties();
  print(before);
  const bool ok = propertiesAgree(before) & versionsAndMemoryMakeSense(before) & isFoundByItsPlace();
  pausePoint();
  const cudaDeviceProp after = properties();
  print(after);
  return verdict("device-query",
                 ok & propertiesAgree(after) & EXPECT(std::memcmp(&before.uuid, &after.uuid, sizeof before.uuid) == 0) &
                     EXPECT(before.pciBusID == after.pciBusID) & EXPECT(before.pciDeviceID == after.pciDeviceID) &
                     EXPECT(std::strcmp(before.name, after.name) == 0));
}
