// Pages that are moved into the arena and back into private memory while threads use them.
#include "intercept/session/memory/page-adoption.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "intercept/session/memory/write-protection.h"
#include "vgpu/wire/arena.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

constexpr uint64_t pageBytes = 4 * KiB, pages = 700;

uint64_t addressOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

struct Memory {
  Memory()
      : bytes(static_cast<char*>(
            mmap(nullptr, pages * pageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(bytes != MAP_FAILED);
  }
  ~Memory() { munmap(bytes, pages * pageBytes); }
  AdoptedPages adopted() const { return {addressOf(bytes), pages * pageBytes, hostArenaBase + 2 * MiB}; }
  std::atomic<long>& word(uint64_t page) { return *reinterpret_cast<std::atomic<long>*>(bytes + page * pageBytes); }

  char* bytes;
  MemoryFile file = MemoryFile::create("vgpu-test-arena", hostArenaBytes);
  Mapping arena{file, reinterpret_cast<void*>(hostArenaBase)};
};

bool isRefusedHere(Memory& memory) {
  if (WriteProtection::over(addressOf(memory.bytes), pages * pageBytes)) return false;
  MESSAGE("skipped: this system has no write protection by userfaultfd, or refuses it");
  return true;
}

}  // namespace

TEST_CASE("no write is lost while pages are adopted and returned, whatever signals its thread blocks") {
  Memory memory;
  if (isRefusedHere(memory)) return;
  std::atomic<bool> ended{false};
  std::array<long, pages> counted{};
  std::thread writer([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (uint64_t page = 0; !ended; page = (page + 7) % pages) {
      memory.word(page).fetch_add(1);
      ++counted[page];
    }
  });
  bool done = true;
  for (int round = 0; round < 20; ++round)
    done = done && adoptPages(memory.adopted(), memory.file) && returnPages(memory.adopted(), memory.file);
  ended = true;
  writer.join();
  CHECK(done);
  CHECK(kindOfPages(addressOf(memory.bytes), pages * pageBytes) == PageKind::adoptable);
  long lost = 0;
  for (uint64_t page = 0; page < pages; ++page) lost += counted[page] - memory.word(page).load();
  CHECK(lost == 0);
}

TEST_CASE("system calls that write to the pages meanwhile succeed, if the process may handle the kernel's faults") {
  Memory memory;
  if (isRefusedHere(memory)) return;
  auto watch = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  if (watch < 0) {
    MESSAGE("skipped: it may not");
    return;
  }
  close(watch);
  std::atomic<bool> ended{false};
  std::atomic<long> failed{0};
  std::thread reader([&] {
    int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    for (uint64_t page = 0; !ended; page = (page + 11) % pages)
      failed += read(zeros, memory.bytes + page * pageBytes, 64) != 64;
    close(zeros);
  });
  bool done = true;
  for (int round = 0; round < 20; ++round)
    done = done && adoptPages(memory.adopted(), memory.file) && returnPages(memory.adopted(), memory.file);
  ended = true;
  reader.join();
  CHECK(done);
  CHECK(failed == 0);
}

TEST_CASE("adopted pages belong to the arena, and returned ones are private again, with everything written meanwhile") {
  Memory memory;
  if (isRefusedHere(memory)) return;
  memory.word(3) = 33;
  REQUIRE(adoptPages(memory.adopted(), memory.file));
  auto* inArena = reinterpret_cast<std::atomic<long>*>(memory.arena.data() + 2 * MiB + 5 * pageBytes);
  memory.word(5) = 55;
  CHECK(*inArena == 55);
  *inArena = 56;
  REQUIRE(returnPages(memory.adopted(), memory.file));
  CHECK(memory.word(3) == 33);
  CHECK(memory.word(5) == 56);
  *inArena = 57;
  CHECK(memory.word(5) == 56);
}

TEST_CASE("read-only pages are adopted and returned as read-only") {
  Memory memory;
  memory.word(3) = 33;
  REQUIRE(mprotect(memory.bytes, pages * pageBytes, PROT_READ) == 0);
  CHECK(kindOfPages(addressOf(memory.bytes), pages * pageBytes) == PageKind::readOnly);
  AdoptedPages readOnly = memory.adopted();
  readOnly.areReadOnly = true;
  REQUIRE(adoptPages(readOnly, memory.file));
  CHECK(kindOfPages(addressOf(memory.bytes), pages * pageBytes) == PageKind::otherReadOnly);
  CHECK(reinterpret_cast<std::atomic<long>*>(memory.arena.data() + 2 * MiB + 3 * pageBytes)->load() == 33);
  CHECK(memory.word(3) == 33);
  REQUIRE(returnPages(readOnly, memory.file));
  CHECK(kindOfPages(addressOf(memory.bytes), pages * pageBytes) == PageKind::readOnly);
  CHECK(memory.word(3) == 33);
}

TEST_CASE("kinds of pages are distinguished: shared, of a file, partly read-only, unreadable, unmapped") {
  Memory memory;
  const uint64_t address = addressOf(memory.bytes);
  CHECK(kindOfPages(address, pageBytes) == PageKind::adoptable);
  REQUIRE(mprotect(memory.bytes + pageBytes, pageBytes, PROT_READ) == 0);
  CHECK(kindOfPages(address, 2 * pageBytes) == PageKind::otherReadOnly);
  CHECK(kindOfPages(address + pageBytes, pageBytes) == PageKind::readOnly);
  REQUIRE(mprotect(memory.bytes + 2 * pageBytes, pageBytes, PROT_NONE) == 0);
  CHECK(kindOfPages(address + 2 * pageBytes, pageBytes) == PageKind::unmapped);
  REQUIRE(munmap(memory.bytes + 3 * pageBytes, pageBytes) == 0);
  CHECK(kindOfPages(address + 2 * pageBytes, 2 * pageBytes) == PageKind::unmapped);
  CHECK(kindOfPages(addressOf(memory.arena.data()), pageBytes) == PageKind::other);
  int onStack = 0;
  CHECK(kindOfPages(addressOf(&onStack) / pageBytes * pageBytes, pageBytes) == PageKind::other);
  static int initialised = 1;  // in a page of the program's file
  CHECK(kindOfPages(addressOf(&initialised) / pageBytes * pageBytes, pageBytes) == PageKind::other);
}

TEST_CASE("pages behind the end of their file cannot be read") {
  int file = memfd_create("short", MFD_CLOEXEC);
  REQUIRE(ftruncate(file, 100) == 0);
  void* mapped = mmap(nullptr, 2 * pageBytes, PROT_READ, MAP_PRIVATE, file, 0);
  REQUIRE(mapped != MAP_FAILED);
  close(file);
  CHECK(kindOfPages(addressOf(mapped), pageBytes) == PageKind::readOnly);
  CHECK(kindOfPages(addressOf(mapped), 2 * pageBytes) == PageKind::unmapped);
  munmap(mapped, 2 * pageBytes);
}

TEST_CASE("adopted pages that the program has made writable meanwhile stay so") {
  Memory memory;
  if (isRefusedHere(memory)) return;
  REQUIRE(mprotect(memory.bytes, pages * pageBytes, PROT_READ) == 0);
  AdoptedPages readOnly = memory.adopted();
  readOnly.areReadOnly = true;
  REQUIRE(adoptPages(readOnly, memory.file));
  REQUIRE(mprotect(memory.bytes, 2 * pageBytes, PROT_READ | PROT_WRITE) == 0);
  memory.word(1) = 7;
  REQUIRE(returnPages(readOnly, memory.file));
  memory.word(1) += 1;
  CHECK(memory.word(1) == 8);
  CHECK(kindOfPages(addressOf(memory.bytes) + 2 * pageBytes, pageBytes) == PageKind::readOnly);
}
