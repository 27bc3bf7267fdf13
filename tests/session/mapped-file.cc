// Finds the files whose memory a program has mapped, by address.
#include "intercept/session/memory/mapped-file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "vgpu/base/sizes.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

constexpr uint64_t filePages = 8;

uint64_t wireOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// A named file in memory, of which a piece is mapped.
struct NamedFile {
  std::string path = "/dev/shm/vgpu-test-mapped-XXXXXX";
  int fd = mkstemp(path.data());
  struct stat status {};

  NamedFile() {
    REQUIRE(fd >= 0);
    REQUIRE(ftruncate(fd, filePages * hostPageBytes) == 0);
    REQUIRE(fstat(fd, &status) == 0);
  }
  ~NamedFile() {
    if (fd >= 0) close(fd);
    unlink(path.c_str());
  }
  char* map(uint64_t firstPage, uint64_t count, int flags = MAP_SHARED, int protection = PROT_READ | PROT_WRITE, void* at = nullptr) const {
    void* mapped = mmap(at, count * hostPageBytes, protection, flags, fd, static_cast<off_t>(firstPage * hostPageBytes));
    REQUIRE(mapped != MAP_FAILED);
    return static_cast<char*>(mapped);
  }
  void letGo() { close(std::exchange(fd, -1)); }
  bool is(const std::optional<MappedFile>& found, uint64_t page) const {
    struct stat other {};
    return found && fstat(found->file, &other) == 0 && other.st_ino == status.st_ino && other.st_dev == status.st_dev &&
           found->offset == page * hostPageBytes;
  }
};

// Runs `body` on a thread that may not follow /proc/self/map_files, as for ordinary users.
void withoutPrivilege(const std::function<void()>& body) {
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2]{};
    none[0].effective = none[0].permitted = 1u << CAP_DAC_OVERRIDE;  // lets root access its own files
    if (geteuid() != 0) none[0] = {};
    REQUIRE(syscall(SYS_capset, &header, none) == 0);
    body();
  }).join();
}

}  // namespace

TEST_CASE("a file is found from an address on, at any offset in the file") {
  NamedFile file;
  char* mapped = file.map(2, 5);
  CHECK(file.is(findMappedFile(wireOf(mapped), 5 * hostPageBytes), 2));
  CHECK(file.is(findMappedFile(wireOf(mapped) + hostPageBytes, 3 * hostPageBytes), 3));
  CHECK(!findMappedFile(wireOf(mapped) + 3 * hostPageBytes, 3 * hostPageBytes));  // another mapping follows, or none
  munmap(mapped, 5 * hostPageBytes);
  CHECK(!findMappedFile(wireOf(mapped), hostPageBytes));
}

TEST_CASE("private or anonymous memory, and memory of two files, is not found; read-only memory is found as such") {
  NamedFile file, other;
  char* copied = file.map(0, filePages, MAP_PRIVATE);
  CHECK(!findMappedFile(wireOf(copied), hostPageBytes));
  char* readOnly = file.map(0, filePages, MAP_SHARED, PROT_READ);
  auto found = findMappedFile(wireOf(readOnly), hostPageBytes);
  CHECK(file.is(found, 0));
  CHECK((fcntl(found->file, F_GETFL) & O_ACCMODE) == O_RDONLY);
  REQUIRE(mprotect(readOnly, hostPageBytes, PROT_READ | PROT_WRITE) == 0);
  CHECK(!findMappedFile(wireOf(readOnly), 2 * hostPageBytes));  // read-only and writable memory together
  CHECK((fcntl(findMappedFile(wireOf(readOnly), hostPageBytes)->file, F_GETFL) & O_ACCMODE) == O_RDWR);
  void* anonymous = mmap(nullptr, hostPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(!findMappedFile(wireOf(anonymous), hostPageBytes));
  char* both = file.map(0, filePages);
  other.map(4, 4, MAP_SHARED | MAP_FIXED, PROT_READ | PROT_WRITE, both + 4 * hostPageBytes);
  CHECK(!findMappedFile(wireOf(both), filePages * hostPageBytes));
  CHECK(file.is(findMappedFile(wireOf(both), 4 * hostPageBytes), 0));
  char* outOfOrder = file.map(0, filePages);
  file.map(5, 1, MAP_SHARED | MAP_FIXED, PROT_READ | PROT_WRITE, outOfOrder + hostPageBytes);
  CHECK(!findMappedFile(wireOf(outOfOrder), 2 * hostPageBytes));
  for (char* each : {copied, readOnly, both, outOfOrder}) munmap(each, filePages * hostPageBytes);
  munmap(anonymous, hostPageBytes);
}

TEST_CASE("adjacent mappings of one file that the system lists separately are one") {
  NamedFile file;
  char* mapped = file.map(0, filePages);
  REQUIRE(madvise(mapped + 2 * hostPageBytes, hostPageBytes, MADV_DONTDUMP) == 0);
  CHECK(file.is(findMappedFile(wireOf(mapped), filePages * hostPageBytes), 0));
  munmap(mapped, filePages * hostPageBytes);
}

TEST_CASE("without privilege a file is found by its path, or by another descriptor, and never another file by that path") {
  NamedFile file;
  char* mapped = file.map(0, filePages);
  withoutPrivilege([&] { CHECK(file.is(findMappedFile(wireOf(mapped), filePages * hostPageBytes), 0)); });
  unlink(file.path.c_str());
  withoutPrivilege([&] { CHECK(file.is(findMappedFile(wireOf(mapped), filePages * hostPageBytes), 0)); });
  file.letGo();
  withoutPrivilege([&] { CHECK(!findMappedFile(wireOf(mapped), filePages * hostPageBytes)); });
  const std::string replaced = file.path;
  close(open(replaced.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  withoutPrivilege([&] { CHECK(!findMappedFile(wireOf(mapped), filePages * hostPageBytes)); });
  munmap(mapped, filePages * hostPageBytes);
}

TEST_CASE("a device that is mapped is not opened") {
  void* mapped = mmap(nullptr, hostPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, kj::AutoCloseFd(open("/dev/zero", O_RDWR | O_CLOEXEC)), 0);
  REQUIRE(mapped != MAP_FAILED);
  auto found = findMappedFile(wireOf(mapped), hostPageBytes);  // shared memory without a name, for which the system makes a file
  struct stat status {};
  if (found) CHECK((fstat(found->file, &status) == 0 && S_ISREG(status.st_mode)));
  munmap(mapped, hostPageBytes);
}
