#include "intercept/session/memory/write-protection.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vgpu/wire/arena.h"

namespace vgpu::client {

namespace {

// Opens a userfaultfd; preferably one that also handles the kernel's accesses, if that is permitted.
kj::AutoCloseFd openWatch() {
  kj::AutoCloseFd all(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC)));
  if (all.get() >= 0) return all;
  kj::AutoCloseFd device(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
  if (device.get() >= 0) return kj::AutoCloseFd(ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC));
  return kj::AutoCloseFd(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
}

// Faults the pages in: only present pages are protected, and a page faulted in later would be writable.
void touch(uint64_t address, uint64_t bytes) {
  for (uint64_t page = address; page < address + bytes; page += hostPageBytes) {
    char byte;
    asm volatile("movb (%1), %0" : "=q"(byte) : "r"(page) : "memory");  // sanitizers do not check this load
  }
}

bool setProtection(int fd, uint64_t address, uint64_t bytes, uint64_t mode) {
  uffdio_writeprotect request{{address, bytes}, mode};
  return ioctl(fd, UFFDIO_WRITEPROTECT, &request) == 0;
}

}  // namespace

std::optional<WriteProtection> WriteProtection::over(uint64_t address, uint64_t bytes) {
  kj::AutoCloseFd fd = openWatch();
  if (fd.get() < 0) return std::nullopt;
  uffdio_api api{.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM, .ioctls = 0};
  if (ioctl(fd, UFFDIO_API, &api) != 0) return std::nullopt;
  uffdio_register watched{.range = {address, bytes}, .mode = UFFDIO_REGISTER_MODE_WP, .ioctls = 0};
  if (ioctl(fd, UFFDIO_REGISTER, &watched) != 0) return std::nullopt;
  return WriteProtection(kj::mv(fd));
}

bool WriteProtection::protect(uint64_t address, uint64_t bytes) {
  touch(address, bytes);
  return setProtection(fd, address, bytes, UFFDIO_WRITEPROTECT_MODE_WP);
}

// Removing the protection wakes the threads that wait.
void WriteProtection::unprotect(uint64_t address, uint64_t bytes) { setProtection(fd, address, bytes, 0); }

void WriteProtection::wake(uint64_t address, uint64_t bytes) {
  uffdio_range range{address, bytes};
  ioctl(fd, UFFDIO_WAKE, &range);
}

}  // namespace vgpu::client
