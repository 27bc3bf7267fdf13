#include "vgpu/base/memory-file.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <utility>

#include "vgpu/base/sizes.h"

namespace vgpu {

namespace {
constexpr int resizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
}

MemoryFile MemoryFile::create(const std::string& name, uint64_t bytes) {
  int fd;
  KJ_SYSCALL(fd = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING), name.c_str());
  MemoryFile file(fd, bytes);
  KJ_SYSCALL(ftruncate(fd, static_cast<off_t>(bytes)), name.c_str(), bytes);
  KJ_SYSCALL(fcntl(fd, F_ADD_SEALS, resizeSeals), name.c_str());
  return file;
}

bool MemoryFile::isInMemory(int fd) {
  struct statfs system {};
  return fstatfs(fd, &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == HUGETLBFS_MAGIC);
}

uint64_t MemoryFile::pageBytes(int fd) {
  struct statfs system {};
  const bool isHuge = fstatfs(fd, &system) == 0 && system.f_type == HUGETLBFS_MAGIC;
  return isHuge ? static_cast<uint64_t>(system.f_bsize) : static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

bool MemoryFile::isSealed(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & resizeSeals) == resizeSeals;
}

MemoryFile MemoryFile::adopt(int fd, uint64_t leastBytes, uint64_t mostBytes) {
  MemoryFile file(fd, 0);
  struct stat status;
  KJ_SYSCALL(fstat(fd, &status));
  KJ_REQUIRE(isSealed(fd), "shared memory must be a memfd that is sealed against resizing");
  file.size = static_cast<uint64_t>(status.st_size);
  KJ_REQUIRE(file.size >= leastBytes && file.size <= mostBytes, "shared memory of an unexpected size", file.size,
             leastBytes, mostBytes);
  return file;
}

MemoryFile MemoryFile::adoptPiece(int fd, uint64_t bytes) {
  MemoryFile file(fd, bytes);
  struct stat status;
  KJ_SYSCALL(fstat(fd, &status));
  KJ_REQUIRE(S_ISREG(status.st_mode) && status.st_nlink > 0, "shared memory must be a sealed memfd, or a range of a named file");
  off_t position;
  KJ_SYSCALL(position = lseek(fd, 0, SEEK_CUR));
  file.start = static_cast<uint64_t>(position);
  const auto end = static_cast<uint64_t>(status.st_size);
  KJ_REQUIRE(position > 0 && file.start % hostPageBytes == 0 && file.start <= end && bytes <= end - file.start,
             "a range past the end of its file", file.start, bytes, end);
  return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : descriptor(std::exchange(other.descriptor, -1)), size(std::exchange(other.size, 0)), start(std::exchange(other.start, 0)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(descriptor, other.descriptor);
  std::swap(size, other.size);
  std::swap(start, other.start);
  return *this;
}

MemoryFile::~MemoryFile() {
  if (descriptor >= 0) close(descriptor);
}

Mapping::Mapping(const MemoryFile& file, void* address) : size(file.bytes()) {
  int flags = MAP_SHARED | MAP_NORESERVE | (address == nullptr ? 0 : MAP_FIXED_NOREPLACE);
  void* mapped = mmap(address, size, PROT_READ | PROT_WRITE, flags, file.fd(), static_cast<off_t>(file.offset()));
  if (mapped == MAP_FAILED) KJ_FAIL_SYSCALL("mmap", errno, address, size);
  start = static_cast<std::byte*>(mapped);
  madvise(start, size, MADV_DONTDUMP);
  madvise(start, size, MADV_HUGEPAGE);  // if the system allows it: fewer and larger pages speed up the GPU's copies
}

Mapping::Mapping(Mapping&& other) noexcept
    : start(std::exchange(other.start, nullptr)), size(std::exchange(other.size, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(start, other.start);
  std::swap(size, other.size);
  return *this;
}

Mapping::~Mapping() { unmapAllBut({}); }

void Mapping::unmapAllBut(const std::vector<Piece>& kept) {
  uint64_t at = 0;
  auto unmapUntil = [&](uint64_t end) {
    if (end > at) munmap(start + at, end - at);
  };
  for (auto& piece : kept) {
    unmapUntil(piece.offset);
    at = piece.offset + piece.bytes;
  }
  unmapUntil(size);
  start = nullptr;
  size = 0;
}

}  // namespace vgpu
