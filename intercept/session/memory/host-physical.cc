#include "intercept/session/memory/host-physical.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "intercept/session/background-thread.h"
#include "intercept/session/call.h"
#include "intercept/session/session.h"
#include "intercept/session/thread.h"
#include "vgpu/base/machine-memory.h"
#include "vgpu/base/memory-file.h"

namespace vgpu::client {
namespace {

constexpr const char* fileName = "vgpu-shared";  // as shown in /proc

kj::AutoCloseFd duplicate(int descriptor) { return kj::AutoCloseFd(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)); }

}  // namespace

CUresult HostPhysical::make(Thread& thread, uint64_t bytes, bool isShareable, HostPhysical& made) {
  made.size = bytes;
  made.isShareable = isShareable;
  return isShareable ? made.makeFile(thread) : made.allocate(thread);
}

CUresult HostPhysical::allocate(Thread& thread) {
  Memory& memory = thread.session.memory;
  if (CUresult error = memory.allocateHost(thread, size, 0, HostKind::physical, 0, arenaAddress)) return error;
  if (memory.isShared(arenaAddress)) return CUDA_SUCCESS;
  memory.freeHost(thread, arenaAddress);  // the session has left its host meanwhile
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult HostPhysical::makeFile(Thread& thread) {
  if (size > machineMemory().availableBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const MemoryFile made = MemoryFile::create(fileName, size);
  SignalsBlocked untilThere;  // a signal would interrupt fallocate()
  if (fallocate(made.fd(), 0, 0, static_cast<off_t>(size)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  return give(thread, duplicate(made.fd()));
}

CUresult HostPhysical::give(Thread& thread, kj::AutoCloseFd descriptor) {
  GivenFiles& files = thread.session.files();
  file = files.give(kj::mv(descriptor));
  if (file != nullptr) return CUDA_SUCCESS;
  if (files.isClosed()) return CUDA_ERROR_NOT_SUPPORTED;  // the session has left its host meanwhile
  return thread.session.lost ? thread.session.lossResult() : CUDA_ERROR_OUT_OF_MEMORY;
}

bool HostPhysical::isIn(int descriptor) {
  char target[64];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = readlink(link.c_str(), target, sizeof target);
  return length > 0 && std::string(target, static_cast<size_t>(length)) == std::string("/memfd:") + fileName + " (deleted)";
}

CUresult HostPhysical::import(Thread& thread, int descriptor, HostPhysical& found) {
  if (!thread.session.memory.canMapHost()) return CUDA_ERROR_NOT_SUPPORTED;
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !MemoryFile::isSealed(descriptor)) return CUDA_ERROR_INVALID_VALUE;
  found.size = static_cast<uint64_t>(status.st_size);
  if (found.size == 0 || !isGranular(found.size)) return CUDA_ERROR_INVALID_VALUE;
  return found.give(thread, duplicate(descriptor));
}

CUresult HostPhysical::exportTo(int& descriptor) const {
  descriptor = duplicate(file->fd()).release();
  return descriptor < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

// Maps in this process first: SecondMapping's destructor undoes that if the worker refuses.
CUresult HostPhysical::map(Thread& thread, uint64_t address, std::optional<SecondMapping>& mapping) const {
  auto here = file == nullptr ? thread.session.memory.mapAgain(arenaAddress, size, address)
                              : SecondMapping::at(address, size, file->fd(), 0);
  if (!here) return CUDA_ERROR_OUT_OF_MEMORY;
  Call<api::Cuda::PhysicalMapHostParams> frame(thread.on(hostMemoryDevice), api::Method::physicalMapHost);
  frame->setAddress(address);
  frame->setBytes(size);
  frame->setArenaAddress(arenaAddress);
  if (file != nullptr) setName(frame, file->name);
  frame.describe(address, size);
  if (CUresult error = frame.call()) return error;
  mapping.emplace(std::move(*here));
  return CUDA_SUCCESS;
}

CUresult HostPhysical::end(Thread& thread) const {
  return arenaAddress == 0 ? CUDA_SUCCESS : thread.session.memory.freeHost(thread, arenaAddress);
}

CUmemAllocationProp HostPhysical::properties() const {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  if (isShareable) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

}  // namespace vgpu::client
