#include "intercept/session/managed/page-watch.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "intercept/session/background-thread.h"
#include "vgpu/api/wire-value.h"
#include "vgpu/wire/arena.h"

namespace vgpu::client {

namespace {

constexpr uint64_t continueProtected = 1 << 1;  // UFFDIO_CONTINUE_MODE_WP, newer than some headers

void* pageAt(uint64_t address) { return fromWire<void*>(address); }

// A userfaultfd that also handles the kernel's accesses.
kj::AutoCloseFd openWatch() {
  kj::AutoCloseFd fd(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC)));
  if (fd.get() < 0) {
    kj::AutoCloseFd device(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
    if (device.get() >= 0) fd = kj::AutoCloseFd(ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC));
  }
  if (fd.get() < 0) return {};
  uffdio_api api{.api = UFFD_API,
                 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_MISSING_SHMEM |
                             UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_THREAD_ID,
                 .ioctls = 0};
  return ioctl(fd, UFFDIO_API, &api) == 0 ? kj::mv(fd) : kj::AutoCloseFd();
}

std::atomic<PageWatch*> started{nullptr};

}  // namespace

PageWatch::PageWatch(kj::AutoCloseFd fd, Serve serve) : fd(kj::mv(fd)), serve(serve), process(getpid()) {}

void PageWatch::start(Serve serve) {
  const char* wish = std::getenv("VGPU_MANAGED_FAULTS");
  if (wish == nullptr || std::string_view(wish) != "userfaultfd" || find() != nullptr) return;
  kj::AutoCloseFd fd = openWatch();
  if (fd.get() < 0) return;
  auto* watch = new PageWatch(kj::mv(fd), serve);  // never deleted: its threads use it until the process ends
  watch->startReader();
  started.store(watch, std::memory_order_release);
}

// A forked child has its parent's userfaultfd, with which it would change its parent's memory: it gets nullptr.
PageWatch* PageWatch::find() {
  PageWatch* found = started.load(std::memory_order_acquire);
  return found != nullptr && found->process == getpid() ? found : nullptr;
}

void PageWatch::startReader() {
  waiting.fetch_add(1, std::memory_order_relaxed);
  startBackgroundThread("vgpu-touches", [this] { readFaults(); }).detach();
}

void PageWatch::readFaults() {
  for (;;) {
    uffd_msg message;
    if (read(fd, &message, sizeof message) != sizeof message) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return;
    }
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    if (waiting.fetch_sub(1, std::memory_order_relaxed) == 1) startReader();
    const auto& fault = message.arg.pagefault;
    const uint64_t page = fault.address / hostPageBytes * hostPageBytes;
    // If it fails, the page is protected, so that the access is repeated and raises a signal.
    if (!serve(fault.address, (fault.flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP)) != 0,
               static_cast<pid_t>(fault.feat.ptid)))
      mprotect(pageAt(page), hostPageBytes, PROT_NONE);
    uffdio_range one{page, hostPageBytes};
    ioctl(fd, UFFDIO_WAKE, &one);
    waiting.fetch_add(1, std::memory_order_relaxed);
  }
}

bool PageWatch::add(uint64_t address, uint64_t bytes, void* always) {
  if (mlock2(always, bytes, MLOCK_ONFAULT) != 0) return false;
  uffdio_register watched{.range = {address, bytes},
                          .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP,
                          .ioctls = 0};
  if (ioctl(fd, UFFDIO_REGISTER, &watched) != 0) return false;
  // Mapping a first page shows whether the kernel supports read-only mapping.
  if (map(address, hostPageBytes, always, HostAccess::read)) return true;
  uffdio_range all{address, bytes};
  ioctl(fd, UFFDIO_UNREGISTER, &all);
  return false;
}

bool PageWatch::allow(uint64_t address, uint64_t bytes, void* always, HostAccess before, HostAccess access) {
  if (access == HostAccess::none) return madvise(pageAt(address), bytes, MADV_DONTNEED) == 0;
  return before == HostAccess::none ? map(address, bytes, always, access) : makeWritable(address, bytes);
}

void PageWatch::allowAgain(uint64_t page, void* always, HostAccess access) {
  map(page, hostPageBytes, always, access);
  if (access == HostAccess::write) makeWritable(page, hostPageBytes);
}

// Wakes no threads: the reader of each fault wakes the thread that waits.
bool PageWatch::map(uint64_t address, uint64_t bytes, void* always, HostAccess access) {
  if (madvise(always, bytes, MADV_POPULATE_WRITE) != 0) return false;
  const uint64_t mode = UFFDIO_CONTINUE_MODE_DONTWAKE | (access == HostAccess::read ? continueProtected : 0);
  for (uint64_t done = 0; done < bytes;) {
    uffdio_continue request{{address + done, bytes - done}, mode, 0};
    if (ioctl(fd, UFFDIO_CONTINUE, &request) == 0) return true;
    if (request.mapped > 0) done += static_cast<uint64_t>(request.mapped);
    else if (errno == EEXIST) done += hostPageBytes;
    else if (errno != EAGAIN) return false;
  }
  return true;
}

bool PageWatch::makeWritable(uint64_t address, uint64_t bytes) {
  for (;;) {
    uffdio_writeprotect request{{address, bytes}, UFFDIO_WRITEPROTECT_MODE_DONTWAKE};
    if (ioctl(fd, UFFDIO_WRITEPROTECT, &request) == 0) return true;
    if (errno != EAGAIN) return false;
  }
}

}  // namespace vgpu::client
