#include "stub/emulator/stream/shared-records.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "stub/emulator/driver/casts-unsafe.h"

namespace vgpu::emulator::api {
namespace {

constexpr uint64_t pageBytes = hostPageBytes;
constexpr auto retry = std::chrono::microseconds(20);

// The content of a handle: the page's file, and its random number.
struct Content {
  char kind[8] = {'e', 'm', 'u', ' ', 'e', 'v', 't', 0};
  int32_t process = 0, descriptor = -1;
  uint64_t first = 0, second = 0;
};
static_assert(sizeof(Content) <= sizeof(CUipcEventHandle));

[[noreturn]] void refuseSystem(const char* call) {
  refuse(CUDA_ERROR_OPERATING_SYSTEM, std::string(call) + ": " + std::strerror(errno));
}

}  // namespace

std::shared_ptr<SharedRecords> SharedRecords::make() {
  static_assert(sizeof(Page) <= pageBytes);
  int fd = memfd_create("vgpu-shared-event", MFD_CLOEXEC);
  if (fd < 0) refuseSystem("memfd_create");
  if (ftruncate(fd, pageBytes) != 0) {
    close(fd);
    refuseSystem("ftruncate");
  }
  auto made = std::make_shared<SharedRecords>(fd, HostView::ofFile(fd, 0, pageBytes));
  uint64_t number[2];
  if (getrandom(number, sizeof number, 0) != sizeof number) refuseSystem("getrandom");
  made->page().first.store(number[0], std::memory_order_relaxed);
  made->page().second.store(number[1], std::memory_order_relaxed);
  return made;
}

std::shared_ptr<SharedRecords> SharedRecords::open(const CUipcEventHandle& handle) {
  Content content;
  std::memcpy(&content, handle.reserved, sizeof content);
  if (std::memcmp(content.kind, Content().kind, sizeof content.kind) != 0) refuse(CUDA_ERROR_INVALID_VALUE);
  if (content.process == getpid()) refuse(CUDA_ERROR_INVALID_CONTEXT);
  const std::string path = "/proc/" + std::to_string(content.process) + "/fd/" + std::to_string(content.descriptor);
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  // The descriptor may belong to another file by now.
  if (fd < 0 || fstat(fd, &status) != 0 || status.st_size != static_cast<off_t>(pageBytes)) {
    if (fd >= 0) close(fd);
    refuse(CUDA_ERROR_INVALID_HANDLE);
  }
  auto opened = std::make_shared<SharedRecords>(fd, HostView::ofFile(fd, 0, pageBytes));
  const Page& page = opened->page();
  if (page.first.load(std::memory_order_relaxed) != content.first ||
      page.second.load(std::memory_order_relaxed) != content.second)
    refuse(CUDA_ERROR_INVALID_HANDLE);
  return opened;
}

SharedRecords::~SharedRecords() { close(fd); }

SharedRecords::Page& SharedRecords::page() const { return valueAt<Page>(view->base()); }

CUipcEventHandle SharedRecords::handle() const {
  Content content;
  content.process = getpid();
  content.descriptor = fd;
  content.first = page().first.load(std::memory_order_relaxed);
  content.second = page().second.load(std::memory_order_relaxed);
  CUipcEventHandle handle{};
  std::memcpy(handle.reserved, &content, sizeof content);
  return handle;
}

uint64_t SharedRecords::begin() {
  // Release: a process that sees the number sees what this process did before.
  uint64_t record = page().begun.fetch_add(1, std::memory_order_acq_rel) + 1;
  while (record > words && !isDone(record - words)) std::this_thread::sleep_for(retry);
  return record;
}

void SharedRecords::finish(uint64_t record) { page().done[record % words].store(record, std::memory_order_release); }

}  // namespace vgpu::emulator::api
