#include "intercept/session/page-adoption.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "vgpu/wire/arena.h"

namespace vgpu {

namespace {

// How much is read-only at a time: about 200 µs of copying.
constexpr uint64_t pieceBytes = 1 * MiB;

std::byte* pointer(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// Pages as they are, whatever the program keeps in them: not memcpy, which sanitizers watch.
void copyPages(void* to, const void* from, uint64_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

// A line of /proc/self/maps.
struct MappedRange {
  uint64_t start = 0, end = 0, offset = 0, inode = 0;
  char mode[5] = "";
  std::string name;
};

// Calls `visit` for the mappings that [address, address + bytes) touches, in order.
void forEachMapping(uint64_t address, uint64_t bytes, const std::function<void(const MappedRange&)>& visit) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    MappedRange range;
    int nameAt = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %lu %n", &range.start, &range.end, range.mode, &range.offset,
                    &range.inode, &nameAt) != 5)
      continue;
    if (range.start >= address + bytes) return;
    if (range.end <= address) continue;
    range.name = line.substr(std::min(static_cast<size_t>(nameAt), line.size()));
    visit(range);
  }
}

// All that is being exchanged: memory that a thread may write but for us, so a write that faulted is made again. And
// how far that is still read-only: a thread that faults in that piece waits.
std::atomic<uint64_t> exchangeStart{0}, exchangeEnd{0}, heldStart{0}, heldEnd{0};
struct sigaction before;

void onFault(int signal, siginfo_t* info, void* context) {
  auto address = reinterpret_cast<uint64_t>(info->si_addr);
  if (address >= exchangeStart.load() && address < exchangeEnd.load()) {
    while (address >= heldStart.load() && address < heldEnd.load()) sched_yield();
    return;
  }
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  sigaction(signal, &before, nullptr);
}

std::mutex exchanging;

// While it lives, faults come to onFault().
class FaultsHeld {
 public:
  explicit FaultsHeld(const AdoptedPages& pages) : lock(exchanging) {
    exchangeStart.store(pages.address);
    exchangeEnd.store(pages.address + pages.bytes);
    struct sigaction ours {};
    ours.sa_sigaction = onFault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGSEGV, &ours, &before);
  }
  ~FaultsHeld() {
    // A thread may have faulted and not be in the handler yet: this returns when every thread has been scheduled.
    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
    sigaction(SIGSEGV, &before, nullptr);
    exchangeEnd.store(0);
  }

  // Exchanges [address, address + bytes): `exchange` copies and maps. What it maps is writable; where it fails, the old
  // pages are again.
  template <typename Exchange>
  bool piece(uint64_t address, uint64_t bytes, Exchange&& exchange) {
    heldStart.store(address);
    heldEnd.store(address + bytes);
    bool done = mprotect(pointer(address), bytes, PROT_READ) == 0 && exchange();
    if (!done) mprotect(pointer(address), bytes, PROT_READ | PROT_WRITE);
    heldEnd.store(0);
    return done;
  }

 private:
  std::lock_guard<std::mutex> lock;
};

// Private memory with the bytes of [address, address + bytes), in its place.
bool makePrivate(uint64_t address, uint64_t bytes) {
  void* copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  copyPages(copy, pointer(address), bytes);
  if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(address)) != MAP_FAILED) return true;
  munmap(copy, bytes);
  return false;
}

}  // namespace

PageKind kindOfPages(uint64_t address, uint64_t bytes) {
  uint64_t covered = address;
  bool adoptable = true;
  auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  forEachMapping(address, bytes, [&](const MappedRange& range) {
    if (range.start <= covered) covered = std::max(covered, range.end);
    bool plain = std::strcmp(range.mode, "rw-p") == 0 && range.inode == 0;
    bool named = !range.name.empty() && range.name != "[heap]" && !range.name.starts_with("[anon");
    bool stack = here >= range.start && here < range.end;
    adoptable = adoptable && plain && !named && !stack;
  });
  if (covered < address + bytes) return PageKind::unmapped;
  return adoptable ? PageKind::adoptable : PageKind::other;
}

bool adoptPages(const AdoptedPages& pages, const MemoryFile& arena) {
  FaultsHeld held(pages);
  for (uint64_t done = 0; done < pages.bytes; done += pieceBytes) {
    uint64_t address = pages.address + done, from = pages.arenaAddress + done;
    uint64_t bytes = std::min(pieceBytes, pages.bytes - done);
    bool adopted = held.piece(address, bytes, [&] {
      copyPages(pointer(from), pointer(address), bytes);
      return mmap(pointer(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, arena.fd(),
                  static_cast<off_t>(from - hostArenaBase)) != MAP_FAILED;
    });
    if (!adopted) return false;
  }
  return true;
}

void returnPages(const AdoptedPages& pages, const MemoryFile& arena) {
  struct stat file {};
  if (fstat(arena.fd(), &file) != 0) return;
  std::vector<std::pair<uint64_t, uint64_t>> ours;
  forEachMapping(pages.address, pages.bytes, [&](const MappedRange& range) {
    uint64_t start = std::max(range.start, pages.address), end = std::min(range.end, pages.address + pages.bytes);
    bool same = range.inode == file.st_ino &&
                hostArenaBase + range.offset + (start - range.start) == pages.arenaAddress + (start - pages.address);
    if (same) ours.emplace_back(start, end);
  });
  FaultsHeld held(pages);
  for (auto& [start, end] : ours)
    for (uint64_t address = start; address < end; address += pieceBytes) {
      uint64_t bytes = std::min(pieceBytes, end - address);
      held.piece(address, bytes, [&] { return makePrivate(address, bytes); });
    }
}

void returnPagesInChild(const AdoptedPages& pages) { makePrivate(pages.address, pages.bytes); }

}  // namespace vgpu
