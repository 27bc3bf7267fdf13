#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "vgpu/base/fail.h"
#include "vgpu/wire/guest-file.h"

namespace vgpu {
namespace {

constexpr uint64_t defaultBytes = 2 * GiB;

uint64_t sizeOf(int fd) {
  struct stat status;
  KJ_SYSCALL(fstat(fd, &status));
  return static_cast<uint64_t>(status.st_size);
}

std::byte* mapTable(int fd) {
  void* mapped = mmap(nullptr, GuestLayout::firstSlot, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) KJ_FAIL_SYSCALL("mmap", errno, "the memory of a virtual machine");
  return static_cast<std::byte*>(mapped);
}

// What is wrong with the header of a file of `bytes`; empty if it is valid.
std::string problemOf(const GuestHeader& header, uint64_t bytes) {
  if (header.magic != guestMagic) return "vgpud has written no header to it: does a `vgpud --guest` serve it?";
  if (header.version != guestVersion || header.segmentVersion != segmentVersion)
    return "it is of version " + std::to_string(header.version) + "." + std::to_string(header.segmentVersion) +
           ", this vgpu of " + std::to_string(guestVersion) + "." + std::to_string(segmentVersion) +
           ": use the same vgpu in the machine and on its host";
  if (header.fileBytes != bytes || header.slotBytes != GuestLayout::slotBytes || header.slots != GuestLayout::slots(bytes))
    return "its header is for a memory of another size";
  return "";
}

// A successful compare-and-swap: neither the compiler nor the processor may omit its store, and a concurrent store of another thread is not
// lost.
void rewritePage(std::byte* page) {
  std::atomic_ref word(*reinterpret_cast<uint64_t*>(page));
  uint64_t value = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(value, value)) {
  }
}

void requireSize(const std::string& path, uint64_t bytes) {
  if (std::has_single_bit(bytes) && bytes >= GuestLayout::leastBytes) return;
  fail("the size of a virtual machine's memory must be a power of two, as ivshmem requires, and at least 256 MiB; " + path +
       " has, or would get, " + std::to_string(bytes) + " bytes");
}

}  // namespace

kj::AutoCloseFd GuestFile::make(const std::string& path, uint64_t bytes) {
  kj::AutoCloseFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) fail("the memory of a virtual machine cannot be opened: " + path + ": " + std::strerror(errno));
  struct stat status;
  KJ_SYSCALL(fstat(file, &status));
  if (!S_ISREG(status.st_mode) || status.st_uid != getuid()) fail(path + " is not a regular file of this user");
  uint64_t found = sizeOf(file);
  if (bytes != 0 && found != 0 && found != bytes)
    fail(path + " has " + std::to_string(found) + " bytes, not the " + std::to_string(bytes) + " that --guest gives it");
  if (found == 0) {
    found = bytes == 0 ? defaultBytes : bytes;
    requireSize(path, found);
    if (ftruncate(file, static_cast<off_t>(found)) < 0) fail(path + " cannot be extended to its size: " + std::strerror(errno));
  }
  requireSize(path, found);
  const GuestFile table(reopen(file), Side::host);
  if (table.header().magic == 0) return file;
  std::string problem = problemOf(table.header(), found);
  if (!problem.empty()) fail(path + " cannot be served: " + problem + ". Remove the file while its machine does not run");
  return file;
}

kj::AutoCloseFd GuestFile::reopen(int fd) {
  int again;
  KJ_SYSCALL(again = open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC));
  return kj::AutoCloseFd(again);
}

GuestFile::GuestFile(kj::AutoCloseFd opened, Side side) : file(kj::mv(opened)), side(side), bytes(sizeOf(file)) {
  if (bytes < GuestLayout::leastBytes)
    fail("the memory that this machine shares with its host has only " + std::to_string(bytes) + " bytes");
  start = mapTable(file);
  KJ_ON_SCOPE_FAILURE(munmap(start, GuestLayout::firstSlot));
  if (side == Side::guest) {
    std::string problem = problemOf(header(), bytes);
    if (!problem.empty()) fail("the memory that this machine shares with its host cannot be used: " + problem);
  }
  count = GuestLayout::slots(bytes);
}

GuestFile::~GuestFile() { munmap(start, GuestLayout::firstSlot); }

void GuestFile::writeHeader(uint32_t gpus, bool runsPtx) const {
  GuestHeader& own = header();
  own.version = guestVersion;
  own.segmentVersion = segmentVersion;
  own.fileBytes = bytes;
  own.slotBytes = GuestLayout::slotBytes;
  own.slots = static_cast<uint32_t>(count);
  own.gpus.store(gpus);
  own.runsPtx.store(runsPtx ? 1 : 0);
  std::atomic_ref(own.magic).store(guestMagic, std::memory_order_release);
}

GuestHeader& GuestFile::header() const { return *reinterpret_cast<GuestHeader*>(start); }
GuestSlot& GuestFile::slot(uint64_t index) const { return reinterpret_cast<GuestSlot*>(start + GuestLayout::table)[index]; }

std::optional<kj::AutoCloseFd> GuestFile::lock(uint64_t slot) const {
  kj::AutoCloseFd own = reopen(file);
  if (!GuestLocks(own, side).tryLock(GuestLayout::slot(slot))) return std::nullopt;
  KJ_SYSCALL(lseek(own, static_cast<off_t>(GuestLayout::slotAt(slot) + GuestLayout::mailboxBytes), SEEK_SET));
  return own;
}

bool GuestFile::isLocked(uint64_t slot) const {
  return GuestLocks(file, side).findOthers(GuestLayout::slot(slot)).has_value();
}

void GuestFile::clear(uint64_t slot) const { clear(GuestLayout::slot(slot)); }

// These may include the slot itself, which has the same lock.
std::vector<GuestLocks::Range> GuestFile::piecesOf(uint64_t slot, int locked) const {
  const GuestLocks locks(locked, side);
  const GuestLocks::Range all = GuestLayout::pieces(bytes), own = GuestLayout::slot(slot);
  const uint64_t before = std::clamp(own.place, all.place, all.end()), behind = std::clamp(own.end(), all.place, all.end());
  auto found = locks.ours({all.place, before - all.place});
  auto others = locks.ours({behind, all.end() - behind});
  found.insert(found.end(), others.begin(), others.end());
  return found;
}

void GuestFile::clearPieces(uint64_t slot, int locked) const {
  for (auto& piece : piecesOf(slot, locked)) clear(piece);
}

void GuestFile::clear(const GuestLocks::Range& range) const {
  const auto at = static_cast<off_t>(range.place), length = static_cast<off_t>(range.bytes);
  KJ_SYSCALL(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, length), "the file system has no holes in files");
}

void GuestFile::rewrite(uint64_t slot, int locked) const {
  rewrite(GuestLayout::slot(slot));
  for (auto& piece : piecesOf(slot, locked)) rewrite(piece);
  rewritePage(reinterpret_cast<std::byte*>(&this->slot(slot)));
}

void GuestFile::rewrite(const GuestLocks::Range& range) const {
  void* all = mmap(nullptr, range.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(range.place));
  if (all == MAP_FAILED) KJ_FAIL_SYSCALL("mmap", errno, "a part of a machine's memory", range.place, range.bytes);
  auto* page = static_cast<std::byte*>(all);
  for (uint64_t at = 0; at < range.bytes; at += hostPageBytes) rewritePage(page + at);
  munmap(all, range.bytes);
}

}  // namespace vgpu
