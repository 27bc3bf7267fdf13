// Virtual memory management: physical memory without an address, addresses without memory, and mappings between them.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/graph.h"

namespace vgpu::emulator::api {
namespace {

// The name of the memfd: tells a process that imports it whose memory it is.
const std::string fileName = "vgpu-device-memory-";

int makeMemoryFile(uint64_t bytes, int device) {
  int fd = memfd_create((fileName + std::to_string(device)).c_str(), MFD_CLOEXEC);
  if (fd < 0) refuse(CUDA_ERROR_OPERATING_SYSTEM, std::string("memfd_create: ") + std::strerror(errno));
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    close(fd);
    refuse(CUDA_ERROR_OUT_OF_MEMORY, std::string("ftruncate: ") + std::strerror(errno));
  }
  return fd;
}

// The device whose memory an imported descriptor is; nothing if it is not device memory.
std::optional<int> deviceOfFile(int fd) {
  char text[64] = "";
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), text, sizeof text - 1);
  const std::string start = "/memfd:" + fileName, name(text, length < 0 ? 0 : static_cast<size_t>(length));
  if (!name.starts_with(start)) return std::nullopt;
  return std::atoi(name.c_str() + start.size());
}

void checkProperties(Driver& driver, const CUmemAllocationProp* properties) {
  require(properties != nullptr && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED);
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) refuse(CUDA_ERROR_NOT_SUPPORTED);
  driver.device(properties->location.id);
  auto handles = static_cast<unsigned>(properties->requestedHandleTypes);
  if (handles & ~static_cast<unsigned>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) refuse(CUDA_ERROR_NOT_SUPPORTED);
  require(handles == 0 || (properties->allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) == 0);
}

// If devices are not peers, each can access only its own memory.
void requireReach(Driver& driver, int device, uint64_t address) {
  if (driver.settings.arePeers) return;
  std::optional<Mapping> mapping = driver.space.find(address);
  if (mapping && mapping->physical && mapping->physical->device.ordinal() != device) refuse(CUDA_ERROR_INVALID_DEVICE);
}

bool isPiece(uint64_t value) { return value % pieceBytes == 0; }

}  // namespace

Physical::Physical(Device& device, const CUmemAllocationProp& properties, uint64_t bytes)
    : device(device), properties(properties), bytes(bytes), lease(device, bytes) {
  fd = makeMemoryFile(bytes, device.ordinal());
}

Physical::Physical(Device& device, const CUmemAllocationProp& properties, uint64_t bytes, int fd)
    : device(device), properties(properties), bytes(bytes), fd(fd) {}

std::shared_ptr<HostView> Physical::tiles() {
  std::call_once(viewed, [&] { view = HostView::ofFile(fd, 0, bytes); });
  return view;
}

Physical::~Physical() {
  if (fd >= 0) close(fd);
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                               CUmemAllocationGranularity_flags) {
  return enterDriver([&](Driver& driver) {
    require(granularity != nullptr);
    checkProperties(driver, properties);
    *granularity = pieceBytes;
  });
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr wanted,
                                     unsigned long long flags) {
  return enterDriver([&](Driver& driver) {
    require(address != nullptr && bytes != 0 && flags == 0 && isPiece(bytes));
    require((alignment & (alignment - 1)) == 0);
    *address = driver.space.reserve(bytes, alignment < pieceBytes ? pieceBytes : alignment, wanted);
  });
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return enterDriver([&](Driver& driver) { driver.space.unreserve(address, bytes); });
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                             unsigned long long flags) {
  return enterDriver([&](Driver& driver) {
    require(handle != nullptr && bytes != 0 && flags == 0 && isPiece(bytes));
    checkProperties(driver, properties);
    Device& device = driver.device(properties->location.id);
    *handle = driver.physical.add(std::make_shared<Physical>(device, *properties, bytes));
  });
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<Physical> physical = driver.physical.get(handle);
    if (physical->references.fetch_sub(1) == 1) driver.physical.remove(handle);
  });
}

CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                          unsigned long long flags) {
  return enterDriver([&](Driver& driver) {
    require(flags == 0 && bytes != 0 && isPiece(address) && isPiece(bytes) && isPiece(offset));
    std::shared_ptr<Physical> physical = driver.physical.get(handle);
    require(!physical->isTilePool() && offset <= physical->bytes && bytes <= physical->bytes - offset);
    require(driver.space.reserved(address, bytes));
    std::shared_ptr<HostView> view = HostView::ofFile(physical->fd, offset, bytes);
    std::byte* host = view->base();
    driver.space.map(Mapping{.base = address,
                             .bytes = bytes,
                             .kind = MappingKind::physical,
                             .view = std::move(view),
                             .host = host,
                             .device = &physical->device,
                             .physical = physical,
                             .physicalOffset = offset},
                     CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t bytes) {
  return enterDriver([&](Driver& driver) {
    requireMemoryUnnamed(driver, address, bytes);
    driver.space.unmapPhysical(address, bytes);
  });
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptions, size_t count) {
  return enterDriver([&](Driver& driver) {
    require(descriptions != nullptr && count != 0);
    for (size_t i = 0; i < count; ++i) {
      if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) refuse(CUDA_ERROR_NOT_SUPPORTED);
      require(descriptions[i].location.id >= 0 && descriptions[i].location.id < driver.deviceCount());
      requireReach(driver, descriptions[i].location.id, address);
      CUmemAccess_flags access = descriptions[i].flags;
      require(access == CU_MEM_ACCESS_FLAGS_PROT_NONE || access == CU_MEM_ACCESS_FLAGS_PROT_READ ||
              access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
      driver.space.setAccess(address, bytes, driver.device(descriptions[i].location.id).bit(), access);
    }
  });
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  return enterDriver([&](Driver& driver) {
    require(flags != nullptr && location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE);
    uint64_t bit = driver.device(location->id).bit();
    std::optional<Mapping> mapping = driver.space.find(address);
    require(mapping && mapping->kind == MappingKind::physical);
    *flags = mapping->writers & bit   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : mapping->readers & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  });
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return enterDriver([&](Driver& driver) {
    require(handle != nullptr);
    std::optional<Mapping> mapping = driver.space.find(asNumber(address));
    require(mapping && mapping->physical);
    // If all references have been released, only the mapping keeps the memory, and it gets a new handle.
    if (driver.physical.find(mapping->physical->handle) == mapping->physical) {
      ++mapping->physical->references;
    } else {
      mapping->physical->references = 1;
      driver.physical.add(mapping->physical);
    }
    *handle = mapping->physical->handle;
  });
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                        CUmemGenericAllocationHandle handle) {
  return enterDriver([&](Driver& driver) {
    require(properties != nullptr);
    *properties = driver.physical.get(handle)->properties;
  });
}

CUresult CUDAAPI cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType type, unsigned long long flags) {
  return enterDriver([&](Driver& driver) {
    require(shareable != nullptr && flags == 0 && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    std::shared_ptr<Physical> physical = driver.physical.get(handle);
    require((physical->properties.requestedHandleTypes & type) != 0);
    int fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) refuse(CUDA_ERROR_OPERATING_SYSTEM, std::string("fcntl: ") + std::strerror(errno));
    *static_cast<int*>(shareable) = fd;
  });
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                                CUmemAllocationHandleType type) {
  return enterDriver([&](Driver& driver) {
    require(handle != nullptr && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    int fd = fcntl(static_cast<int>(asNumber(shareable)), F_DUPFD_CLOEXEC, 0);
    struct stat status {};
    std::optional<int> ordinal = fd < 0 ? std::nullopt : deviceOfFile(fd);
    if (!ordinal || *ordinal < 0 || *ordinal >= driver.deviceCount() || fstat(fd, &status) != 0 || status.st_size <= 0 ||
        !isPiece(static_cast<uint64_t>(status.st_size))) {
      if (fd >= 0) close(fd);
      refuse(CUDA_ERROR_INVALID_VALUE);
    }
    // Imported memory is charged to the process that created it, as on hardware.
    Device& device = driver.device(*ordinal);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device.ordinal()};
    *handle =
        driver.physical.add(std::make_shared<Physical>(device, properties, static_cast<uint64_t>(status.st_size), fd));
  });
}
