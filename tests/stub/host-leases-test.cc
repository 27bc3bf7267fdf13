// How much of its host's memory a session may use, and at which addresses.
#include "stub/worker/host-leases.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <kj/io.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <string>

#include "../scratch-directory.h"

using namespace vgpu;
using namespace vgpu::stub;

namespace {

constexpr uint64_t arena = hostArenaBase, elsewhere = 0x5500'0000'0000;  // used by nothing, not even a sanitizer

// A pool over a driver that registers any memory.
struct Pool {
  explicit Pool(HostLimits limits) : pool(driver, std::move(limits)) {
    driver.cuMemHostRegister_v2 = [](void*, size_t, unsigned) { return CUDA_SUCCESS; };
    driver.cuMemHostUnregister = [](void*) { return CUDA_SUCCESS; };
  }
  CUresult lease(uint64_t address, uint64_t bytes) { return pool.lease(address, bytes, file); }
  CUresult endLease(uint64_t address) { return pool.endLease(address, file); }
  CUresult adopt(uint64_t address, uint64_t arenaAddress, uint64_t bytes) {
    return pool.adopt(address, arenaAddress, bytes, false, file);
  }
  CUresult release(uint64_t address) { return pool.release(address, file); }
  // As the program does, which maps the arena too.
  void touch(uint64_t offset, uint64_t bytes) { std::memset(mapped.data() + offset, 1, bytes); }

  MemoryFile file = MemoryFile::create("vgpu-test-arena", hostArenaBytes);
  Mapping mapped{file, fromAddress(arena)};
  Driver driver;
  HostLeases pool;

 private:
  static void* fromAddress(uint64_t address) { return reinterpret_cast<void*>(address); }
};

constexpr uint64_t plenty = std::numeric_limits<uint64_t>::max();
HostLimits limited(uint64_t bytes, uint64_t pieces, uint64_t available) {
  return {bytes, pieces, [available] { return available; }};
}

constexpr CUresult invalid = CUDA_ERROR_INVALID_VALUE, full = CUDA_ERROR_OUT_OF_MEMORY;

}  // namespace

TEST_CASE("a part of the host arena is leased or adopted once, whatever the address") {
  Pool pool(limited(plenty, plenty, plenty));
  CHECK(pool.adopt(elsewhere, arena + 64 * KiB, 64 * KiB) == CUDA_SUCCESS);
  CHECK(pool.adopt(elsewhere + 1 * MiB, arena + 64 * KiB, 64 * KiB) == invalid);
  CHECK(pool.adopt(elsewhere + 1 * MiB, arena + 124 * KiB, 64 * KiB) == invalid);
  CHECK(pool.adopt(elsewhere + 1 * MiB, arena + 60 * KiB, 8 * KiB) == invalid);
  CHECK(pool.lease(arena, 1 * MiB) == invalid);
  CHECK(pool.lease(arena + 68 * KiB, 4 * KiB) == invalid);
  CHECK(pool.lease(arena + 1 * MiB, 1 * MiB) == CUDA_SUCCESS);
  CHECK(pool.adopt(elsewhere + 1 * MiB, arena + 1 * MiB, 4 * KiB) == invalid);
  CHECK(pool.adopt(elsewhere + 1 * MiB, arena, 64 * KiB) == CUDA_SUCCESS);
  CHECK(pool.release(elsewhere) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 64 * KiB, 64 * KiB) == CUDA_SUCCESS);
  CHECK(pool.endLease(arena + 64 * KiB) == CUDA_SUCCESS);
  CHECK(pool.endLease(arena + 1 * MiB) == CUDA_SUCCESS);
  CHECK(pool.release(elsewhere + 1 * MiB) == CUDA_SUCCESS);
}

TEST_CASE("a session's host memory and the number of its pieces are limited, and returned pieces no longer count") {
  Pool pool(limited(4 * MiB, 3, plenty));
  CHECK(pool.lease(arena, 5 * MiB) == full);
  CHECK(pool.lease(arena, 3 * MiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 8 * MiB, 2 * MiB) == full);
  CHECK(pool.adopt(elsewhere, arena + 8 * MiB, 2 * MiB) == full);
  CHECK(pool.adopt(elsewhere, arena + 8 * MiB, 64 * KiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 16 * MiB, 4 * KiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 17 * MiB, 4 * KiB) == full);
  CHECK(pool.endLease(arena) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 17 * MiB, 3 * MiB) == CUDA_SUCCESS);
  CHECK(pool.release(elsewhere) == CUDA_SUCCESS);
}

TEST_CASE("memory that was leased but not touched yet is not promised twice") {
  Pool pool(limited(plenty, plenty, 4 * MiB));
  CHECK(pool.lease(arena, 5 * MiB) == full);
  CHECK(pool.lease(arena, 3 * MiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 8 * MiB, 2 * MiB) == full);
  CHECK(pool.adopt(elsewhere, arena + 8 * MiB, 2 * MiB) == full);
  // After the program touches it, the machine's free memory is smaller instead.
  pool.touch(0, 3 * MiB);
  CHECK(pool.lease(arena + 8 * MiB, 2 * MiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 16 * MiB, 4 * MiB) == full);
  CHECK(pool.pool.registerAll() == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 16 * MiB, 4 * MiB) == CUDA_SUCCESS);
}

TEST_CASE("resident pages, as of a resumed program, need no further memory") {
  Pool pool(limited(plenty, plenty, 1 * MiB));
  pool.touch(0, 8 * MiB);
  pool.touch(16 * MiB, 4 * MiB);
  CHECK(pool.lease(arena, 8 * MiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 15 * MiB, 5 * MiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 24 * MiB, 4 * KiB) == full);
}

namespace {

// A file in the program's memory, of 1 MiB and a part of a page.
struct ProgramsFile {
  int fd = memfd_create("vgpu-test-file", MFD_CLOEXEC);
  ProgramsFile() { REQUIRE(ftruncate(fd, 1 * MiB + 100) == 0); }
  ~ProgramsFile() { close(fd); }
  char at(uint64_t offset) const {
    char byte = 0;
    REQUIRE(pread(fd, &byte, 1, static_cast<off_t>(offset)) == 1);
    return byte;
  }
};

}  // namespace

TEST_CASE("a file of the program's is mapped at its address as long as it is registered, and keeps what is written there") {
  Pool pool(limited(plenty, plenty, plenty));
  ProgramsFile file;
  auto adopt = [&](uint64_t address, uint64_t bytes, uint64_t offset) { return pool.pool.adoptFile(address, bytes, {file.fd, offset, false}, pool.file); };
  CHECK(adopt(elsewhere, 64 * KiB, 128 * KiB) == CUDA_SUCCESS);
  auto* mapped = reinterpret_cast<char*>(elsewhere);
  mapped[5] = 'x';
  CHECK(file.at(128 * KiB + 5) == 'x');
  CHECK(pool.pool.owns(elsewhere, 64 * KiB));
  CHECK(!pool.pool.owns(elsewhere, 64 * KiB + 1));
  CHECK(adopt(elsewhere, 64 * KiB, 0) == CUDA_ERROR_ALREADY_MAPPED);
  CHECK(adopt(elsewhere + 1 * MiB, 64 * KiB, 128 * KiB) == CUDA_SUCCESS);  // the same part at another address
  CHECK(reinterpret_cast<char*>(elsewhere + 1 * MiB)[5] == 'x');
  CHECK(pool.endLease(elsewhere) == invalid);
  CHECK(pool.release(elsewhere) == CUDA_SUCCESS);
  CHECK(pool.release(elsewhere) == invalid);
  CHECK(file.at(128 * KiB + 5) == 'x');
  CHECK(pool.pool.endAll() == CUDA_SUCCESS);
  CHECK(adopt(elsewhere + 1 * MiB, 4 * KiB, 1 * MiB) == CUDA_SUCCESS);  // the page that the file covers in part
}

TEST_CASE("ranges beyond a file, addresses of the session's own, and descriptors that are not files are refused") {
  Pool pool(limited(plenty, plenty, plenty));
  ProgramsFile file;
  auto adopt = [&](uint64_t address, uint64_t bytes, int from, uint64_t offset) { return pool.pool.adoptFile(address, bytes, {from, offset, false}, pool.file); };
  CHECK(adopt(elsewhere, 8 * KiB, file.fd, 1 * MiB) == invalid);
  CHECK(adopt(elsewhere, 4 * KiB, file.fd, plenty / hostPageBytes * hostPageBytes) == invalid);
  CHECK(adopt(elsewhere, plenty / hostPageBytes * hostPageBytes, file.fd, 4 * KiB) == invalid);
  CHECK(adopt(elsewhere, 0, file.fd, 0) == invalid);
  CHECK(adopt(elsewhere, 100, file.fd, 0) == invalid);
  CHECK(adopt(elsewhere + 1, 4 * KiB, file.fd, 0) == invalid);
  CHECK(adopt(elsewhere, 4 * KiB, file.fd, 1) == invalid);
  for (uint64_t address : {uint64_t{0}, arena, deviceArenaBase, mappedArenaBase}) CHECK(adopt(address, 4 * KiB, file.fd, 0) == invalid);
  int pipe[2];
  REQUIRE(pipe2(pipe, O_CLOEXEC) == 0);
  CHECK(adopt(elsewhere, 4 * KiB, pipe[0], 0) == invalid);
  for (int end : pipe) close(end);
  CHECK(adopt(elsewhere, 4 * KiB, -1, 0) == invalid);
}

TEST_CASE("a read-only file is mapped read-only, on any file system; a writable one only if it is in memory") {
  Pool pool(limited(plenty, plenty, plenty));
  ProgramsFile file;
  static unsigned registeredWith;
  pool.driver.cuMemHostRegister_v2 = [](void*, size_t, unsigned flags) { return registeredWith = flags, CUDA_SUCCESS; };
  kj::AutoCloseFd reader(open(("/proc/self/fd/" + std::to_string(file.fd)).c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(pool.pool.adoptFile(elsewhere, 4 * KiB, {reader, 0, false}, pool.file) == CUDA_ERROR_ALREADY_MAPPED);
  CHECK(pool.pool.adoptFile(elsewhere, 4 * KiB, {reader, 0, true}, pool.file) == CUDA_SUCCESS);
  CHECK((registeredWith & CU_MEMHOSTREGISTER_READ_ONLY) != 0);
  CHECK(mprotect(reinterpret_cast<void*>(elsewhere), 4 * KiB, PROT_READ | PROT_WRITE) != 0);  // the descriptor is not writable
  kj::AutoCloseFd program(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (MemoryFile::isInMemory(program)) return;
  CHECK(pool.pool.adoptFile(elsewhere + 1 * MiB, 4 * KiB, {program, 0, false}, pool.file) == invalid);
  CHECK(pool.pool.adoptFile(elsewhere + 1 * MiB, 4 * KiB, {program, 0, true}, pool.file) == CUDA_SUCCESS);
}

TEST_CASE("memory that a file does not occupy yet counts, and memory that it occupies does not") {
  Pool pool(limited(512 * KiB, plenty, 64 * KiB));
  ProgramsFile file;
  CHECK(pool.pool.adoptFile(elsewhere, 128 * KiB, {file.fd, 0, false}, pool.file) == full);
  REQUIRE(pwrite(file.fd, std::string(128 * KiB, 'x').data(), 128 * KiB, 0) == 128 * KiB);
  CHECK(pool.pool.adoptFile(elsewhere, 128 * KiB, {file.fd, 0, false}, pool.file) == CUDA_SUCCESS);
  CHECK(pool.pool.adoptFile(elsewhere + 1 * MiB, 512 * KiB, {file.fd, 0, false}, pool.file) == full);  // more than a session may have
}

namespace {

// The memory of a virtual machine, and the session of one of its slots.
struct Machine {
  Machine()
      : opened(GuestFile::make(scratch.path + "/memory", 512 * MiB)), file(GuestFile::reopen(opened), GuestFile::Side::host) {}
  MemoryFile segmentOf(uint64_t slot) const { return MemoryFile::adoptPiece(file.lock(slot)->release(), SegmentLayout::bytes); }
  bool isZero(uint64_t place) const {
    char byte = 1;
    return pread(opened, &byte, 1, static_cast<off_t>(place)) == 1 && byte == 0;
  }

  test::ScratchDirectory scratch;
  kj::AutoCloseFd opened;
  GuestFile file;
};

char& byteAt(uint64_t address) { return *reinterpret_cast<char*>(address); }

constexpr CUresult taken = CUDA_ERROR_ALREADY_MAPPED;
constexpr uint64_t high = 510 * MiB, higher = high + 1 * MiB;

}  // namespace

TEST_CASE("a piece of a machine's memory replaces the arena's until its lease ends, and is zero for the next lease") {
  Pool pool(limited(plenty, plenty, plenty));
  Machine machine;
  MemoryFile segment = machine.segmentOf(0);
  REQUIRE(pwrite(machine.opened, "old", 3, static_cast<off_t>(high)) == 3);
  byteAt(arena) = 'a';
  CHECK(pool.pool.leasePiece(arena, 2 * MiB, high, segment, pool.file) == CUDA_SUCCESS);
  CHECK(pool.pool.owns(arena, 2 * MiB));
  CHECK(machine.isZero(high));
  byteAt(arena) = 'p';
  CHECK_FALSE(machine.isZero(high));
  CHECK(pool.lease(arena, 2 * MiB) == invalid);
  CHECK(pool.pool.registerAll() == CUDA_SUCCESS);
  CHECK(pool.endLease(arena) == CUDA_SUCCESS);
  CHECK(machine.isZero(high));
  CHECK(byteAt(arena) == 'a');  // the arena's own byte
  CHECK(pool.lease(arena, 2 * MiB) == CUDA_SUCCESS);
  CHECK(pool.pool.leasePiece(arena + 4 * MiB, 2 * MiB, high, segment, pool.file) == CUDA_SUCCESS);
  // A process that is passed the descriptor finds the same segment.
  CHECK(lseek(segment.fd(), 0, SEEK_CUR) == static_cast<off_t>(segment.offset()));
}

TEST_CASE("a piece that another session has, or that does not exist, is not leased") {
  Pool pool(limited(3 * MiB, plenty, plenty));
  Machine machine;
  MemoryFile segment = machine.segmentOf(2), other = machine.segmentOf(0);
  auto lease = [&](uint64_t address, uint64_t bytes, uint64_t place) {
    return pool.pool.leasePiece(address, bytes, place, segment, pool.file);
  };
  REQUIRE(GuestLocks(other.fd(), GuestLocks::Side::host).tryLock({500 * MiB, 2 * MiB}));
  CHECK(lease(arena, 2 * MiB, 500 * MiB) == taken);
  CHECK(lease(arena, 4 * MiB, 498 * MiB) == taken);
  CHECK(lease(arena, 2 * MiB, higher) == invalid);
  CHECK(lease(arena, 1 * MiB, high) == invalid);
  CHECK(lease(arena, 0, high) == invalid);
  CHECK(lease(arena, 4 * MiB, high) == invalid);  // beyond the end of the file
  CHECK(lease(arena, 2 * MiB, UINT64_MAX - 2 * MiB + 1) == invalid);
  CHECK(lease(arena, 2 * MiB, 254 * MiB) == invalid);  // before the part that can be pinned
  CHECK(lease(arena, 2 * MiB, GuestLayout::slotAt(2)) == invalid);  // the session's own slot
  CHECK(lease(elsewhere, 2 * MiB, high) == invalid);
  CHECK(pool.pool.leasePiece(arena, 2 * MiB, high, pool.file, pool.file) == invalid);  // for a program that is not in a machine
  CHECK(lease(arena, 4 * MiB, 504 * MiB) == full);
  CHECK_FALSE(GuestLocks(other.fd(), GuestLocks::Side::host).findOthers({504 * MiB, 4 * MiB}));
  CHECK(lease(arena, 2 * MiB, high) == CUDA_SUCCESS);
  CHECK(lease(arena + 8 * MiB, 2 * MiB, high) == invalid);
}

TEST_CASE("a session that is resumed in another worker keeps its pieces' bytes, and another session gets them zeroed") {
  Machine machine;
  {
    MemoryFile segment = machine.segmentOf(0);
    {
      Pool first(limited(plenty, plenty, plenty));
      CHECK(first.pool.leasePiece(arena, 2 * MiB, high, segment, first.file) == CUDA_SUCCESS);
      byteAt(arena) = 'p';
      CHECK(first.pool.endAll() == CUDA_SUCCESS);
    }
    Pool second(limited(plenty, plenty, 2 * MiB - 4 * KiB));  // one page is resident, and needs no further memory
    CHECK(second.pool.leasePiece(arena, 2 * MiB, high, segment, second.file) == CUDA_SUCCESS);
    CHECK(byteAt(arena) == 'p');
  }
  MemoryFile next = machine.segmentOf(0);
  Pool third(limited(plenty, plenty, plenty));
  CHECK(third.pool.leasePiece(arena, 2 * MiB, high, next, third.file) == CUDA_SUCCESS);
  CHECK(byteAt(arena) == 0);
}
