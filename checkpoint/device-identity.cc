#include "checkpoint/device-identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "stub/worker/execution.h"
#include "stub/worker/lease-placements.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"

namespace vgpu::checkpoint {

namespace {

std::string uuidOf(const stub::Driver& driver, CUdevice device) {
  CUuuid uuid{};
  stub::require(driver, driver.cuDeviceGetUuid_v2(&uuid, device), "describing the device");
  std::string hex;
  for (char byte : uuid.bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

Device describe(stub::SessionState& on, unsigned device) {
  auto& driver = on.driver;
  CUdevice real = driver.device(device);
  auto check = [&](CUresult result) { stub::require(driver, result, "describing the device"); };
  char name[256] = "";
  size_t bytes = 0;
  int major = 0, minor = 0;
  check(driver.cuDeviceGetName(name, sizeof name, real));
  check(driver.cuDeviceTotalMem_v2(&bytes, real));
  check(driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, real));
  check(driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, real));
  return {.name = name, .uuid = uuidOf(driver, real), .memoryBytes = bytes, .capability = static_cast<uint64_t>(major * 10 + minor)};
}

double clockOf(stub::SessionState& on, unsigned device) {
  if (!on.isUsed(device) || on.isEnded(device)) return 0;  // the device has no clock to read
  return on.select(device).eventTimes.now();
}

// How much memory the session has on each device, by the driver's device.
std::map<CUdevice, uint64_t> memoryOf(const stub::SessionState& on, const std::vector<ObjectRecord>& records) {
  std::map<CUdevice, uint64_t> bytes;
  for (auto& record : records) {
    const auto placements = stub::placementsOf(record, on.deviceCount());
    for (auto& placement : placements) bytes[on.driver.device(placement.device)] += placement.bytes;
    for (auto& frame : record.recipe) {
      if (frame.method == api::Method::lease && placements.empty())
        bytes[on.driver.device(frame.device)] += api::FrameReader<api::Cuda::LeaseParams>(frame.words).getBytes();
      if (frame.method == api::Method::physicalCreate)
        bytes[on.driver.device(handleDevice(record.id.handle))] +=
            api::FrameReader<api::Cuda::PhysicalCreateParams>(frame.words).getBytes();
    }
  }
  return bytes;
}

// All devices of a session access the managed memory that it has on any of them.
void requireReach(const stub::SessionState& on, const std::vector<ObjectRecord>& records) {
  std::set<unsigned> owners;
  for (auto& record : records)
    for (auto& frame : record.recipe)
      if (frame.method == api::Method::lease && inManagedPart(api::FrameReader<api::Cuda::LeaseParams>(frame.words).getAddress()))
        owners.insert(frame.device);
  for (unsigned owner : owners)
    if (auto other = on.findUnreaching(owner))
      fail(fmt::format("the program's GPU {} has managed memory that its GPU {} accesses as a peer, but here {} cannot access the memory "
                       "of {}: resume it on GPUs that are peers, or on a single GPU with --device-map",
                       owner, *other, on.nameOf(*other), on.nameOf(owner)));
}

}  // namespace

std::vector<Device> devicesOf(stub::SessionState& on) {
  std::vector<Device> devices;
  for (unsigned device = 0; device < on.deviceCount(); ++device) {
    if (device < on.seen.size()) {
      auto& seen = on.seen[device];
      devices.push_back({seen.name, seen.uuid, seen.memoryBytes, seen.capability, 0});
    } else {
      devices.push_back(describe(on, device));
    }
    devices.back().clock = clockOf(on, device);
  }
  return devices;
}

std::vector<std::string> uuidsOf(const stub::Driver& driver) {
  int count = 0;
  stub::require(driver, driver.cuDeviceGetCount(&count), "counting devices");
  std::vector<std::string> uuids;
  for (CUdevice device = 0; device < count; ++device) uuids.push_back(uuidOf(driver, device));
  return uuids;
}

std::vector<CUdevice> chooseDevices(const SnapshotReader& directory, std::span<const uint32_t> wanted, std::span<const std::string> here) {
  Header header = readHeader(directory);
  const auto count = static_cast<unsigned>(here.size());
  auto seen = static_cast<unsigned>(header.devices.size());
  if (wanted.size() > seen)
    fail(fmt::format("the program has {} GPUs, but --device-map names its GPU {}", seen, wanted.size() - 1));
  std::vector<CUdevice> order;
  for (unsigned device = 0; device < seen; ++device) {
    uint32_t named = device < wanted.size() ? wanted[device] : notMapped;
    if (named == notMapped) {
      auto same = std::ranges::find(here, header.devices[device].uuid);
      if (same != here.end()) named = static_cast<uint32_t>(same - here.begin());
    }
    bool isUsed = std::ranges::any_of(header.rings, [&](auto& ring) { return ring.device == device; });
    if (named != notMapped && named >= count)
      fail(fmt::format("--device-map {}={}: there is no GPU {} here; this node has {}", device, named, named, count));
    if (named == notMapped && device >= count && isUsed)
      fail(fmt::format(
          "the program uses {} GPUs, and this node has {}: name with --device-map {}=N the GPU that becomes its GPU {}; one GPU can become "
          "several of them",
          seen, count, device, device));
    order.push_back(static_cast<CUdevice>(named != notMapped ? named : device % count));
  }
  return order;
}

void adoptDevices(stub::SessionState& on, const std::vector<Device>& seen, const std::vector<ObjectRecord>& records) {
  for (auto [device, bytes] : memoryOf(on, records)) {
    size_t total = 0;
    stub::require(on.driver, on.driver.cuDeviceTotalMem_v2(&total, device), "describing the device");
    unsigned number = 0;
    while (number + 1 < on.deviceCount() && on.driver.device(number) != device) ++number;
    if (bytes > total)
      fail(fmt::format("the program uses {} MiB of GPU memory, but {} has {} MiB: resume it on a GPU with more memory",
                       roundUp(bytes, MiB) / MiB, on.nameOf(number), total / MiB));  // rounded up and down: the two never print alike
  }
  on.seen.clear();
  for (auto& device : seen) on.seen.push_back({device.name, device.uuid, device.memoryBytes, device.capability});
  requireReach(on, records);
}

}  // namespace vgpu::checkpoint
