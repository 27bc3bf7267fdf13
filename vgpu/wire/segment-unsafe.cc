#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sys/mman.h>
#include <unistd.h>

#include <limits>

#include "vgpu/wire/segment.h"

namespace vgpu {

namespace {

constexpr uint64_t mirroredBytes = 2 * maxDevices * ringBytes;

std::byte* mapAt(void* address, uint64_t bytes, int flags, int fd, uint64_t offset) {
  int access = fd < 0 ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* mapped = mmap(address, bytes, access, flags | MAP_NORESERVE, fd, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) KJ_FAIL_SYSCALL("mmap", errno, bytes);
  return static_cast<std::byte*>(mapped);
}

}  // namespace

MemoryFile adoptSegment(int fd) {
  const bool isMemfd = fcntl(fd, F_GET_SEALS) >= 0 && lseek(fd, 0, SEEK_CUR) == 0;
  if (isMemfd) return MemoryFile::adopt(fd, 1, std::numeric_limits<int64_t>::max());
  return MemoryFile::adoptPiece(fd, SegmentLayout::bytes);
}

MemoryFile Segment::create() {
  MemoryFile file = MemoryFile::create("vgpu-segment", SegmentLayout::bytes);
  prepare(file);
  return file;
}

void Segment::prepare(const MemoryFile& file) {
  Mapping mapping(file);
  auto* header = reinterpret_cast<SegmentHeader*>(mapping.data());
  header->magic = segmentMagic;
  header->version = segmentVersion;
}

Segment::Segment(const MemoryFile& file) : way(file.isPiece() ? Waking::polling : Waking::futex) {
  KJ_REQUIRE(file.bytes() == SegmentLayout::bytes, "a segment has the wrong size", file.bytes(), SegmentLayout::bytes);
  start = mapAt(nullptr, SegmentLayout::bytes, MAP_SHARED, file.fd(), file.offset());
  KJ_ON_SCOPE_FAILURE(munmap(start, SegmentLayout::bytes));
  madvise(start, SegmentLayout::bytes, MADV_DONTDUMP);
  KJ_REQUIRE(header().magic == segmentMagic, "this shared memory is not a segment");
  KJ_REQUIRE(header().version == segmentVersion, "a segment has another version", header().version, segmentVersion);
  mirrored = mapAt(nullptr, mirroredBytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  KJ_ON_SCOPE_FAILURE(munmap(mirrored, mirroredBytes));
  for (unsigned copy = 0; copy < 2 * maxDevices; ++copy)
    mapAt(mirrored + copy * ringBytes, ringBytes, MAP_SHARED | MAP_FIXED, file.fd(),
          file.offset() + SegmentLayout::rings + copy / 2 * ringBytes);
  populateRing(0);
}

void Segment::populateRing(unsigned device) const { madvise(ringAt(device, 0), ringBytes, MADV_POPULATE_WRITE); }

Segment::~Segment() {
  munmap(mirrored, mirroredBytes);
  munmap(start, SegmentLayout::bytes);
}

SegmentHeader& Segment::header() const { return *reinterpret_cast<SegmentHeader*>(start); }
Slot& Segment::slot(uint64_t index) const { return reinterpret_cast<Slot*>(start + SegmentLayout::slots)[index]; }
std::byte* Segment::reply(uint64_t slot) const { return start + SegmentLayout::replies + slot * replyBytes; }
CompletionWord& Segment::completionWord(uint64_t index) const {
  return reinterpret_cast<CompletionWord*>(start + SegmentLayout::events)[index];
}
SlabState& Segment::slabState(uint64_t index) const {
  return reinterpret_cast<SlabState*>(start + SegmentLayout::slabStates)[index];
}
std::byte* Segment::slab(uint64_t index) const { return start + SegmentLayout::slabs + index * slabBytes; }
RingHeader& Segment::ring(unsigned device) const { return header().rings[device]; }
std::byte* Segment::ringAt(unsigned device, uint64_t position) const {
  return mirrored + device * 2 * ringBytes + position % ringBytes;
}

}  // namespace vgpu
