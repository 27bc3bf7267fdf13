// The segment: the memory that a program shares with its worker. docs/ring.md draws it.
//
//   header | slots | replies | completion words | slab states | staging slabs | a ring for each device
//
// A worker makes it (a sealed memfd) and the program keeps it across a suspend; each further worker maps it. For a program in a virtual
// machine the segment is a piece of that machine's memory (guest-file.h). The program can change it at any time, so the worker keeps its
// own copies of values that it relies on, and copies data before it checks it.
//
// Writers: `head` any program thread; a slot the thread that waits there and, when its frame is complete, the worker or the GPU; `tail`,
// `isOpen`, `fault`, `storesImages`, `outputWaits` the worker only. There are no locks in shared memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "vgpu/base/memory-file.h"
#include "vgpu/wire/arena.h"
#include "vgpu/wire/futex.h"

namespace vgpu {

constexpr uint32_t segmentMagic = 0x55504756;  // "VGPU"
constexpr uint32_t segmentVersion = 10;

constexpr uint64_t ringBytes = 4 * MiB;
constexpr uint64_t maxFrameBytes = 64 * KiB;
constexpr uint64_t slotCount = 32 * 1024;
constexpr uint64_t replyCount = 256;  // only the first slots have room for a reply
constexpr uint64_t replyBytes = 8 * KiB;
constexpr uint64_t maxReplyBytes = 512 * KiB;  // a reply that does not fit a slot is fetched in parts
constexpr uint64_t completionWordCount = 32 * 1024;
constexpr uint64_t slabCount = 64;
constexpr uint64_t slabBytes = 1 * MiB;

// The header of a frame, 64-byte aligned; a Cap'n Proto message (one segment, the method's parameters) follows.
struct FrameHeader {
  // Position + 1 once the frame is complete; 0 before. Stored last (release) by the writer.
  std::atomic<uint64_t> sequence;
  uint32_t bytes;   // the whole frame, a multiple of frameUnit
  uint16_t method;
  uint16_t slot;    // the slot on which the caller waits; ignored for a posted frame
  uint8_t device;   // the device of this ring
  uint8_t reserved[7];
};
constexpr uint64_t frameUnit = 64;
static_assert(sizeof(FrameHeader) == 24);

// A thread waits on it for one call. `done` is written by the worker, or by the GPU itself at the end of a stream's work.
struct alignas(128) Slot {
  std::atomic<uint64_t> done;     // sequence number of the last completed frame that has this slot
  std::atomic<uint32_t> wakeups;  // futex: changes when the worker itself completes a frame
  std::atomic<uint32_t> sleeping; // the thread is in the futex, or about to be
  int32_t result;                 // CUresult of that frame
  uint32_t replyWords;           // size of the reply's Cap'n Proto message; the slot has its beginning
};
static_assert(sizeof(Slot) == 128);

struct alignas(128) RingHeader {
  std::atomic<uint64_t> head;  // writers reserve by fetch-add; 0: the ring has never been used

  alignas(128) std::atomic<uint64_t> tail;      // everything before it is consumed and zeroed
  std::atomic<uint32_t> ringFull;               // futex: changes when the consumer has made room and a writer waits
  std::atomic<uint32_t> writersWaiting;

  alignas(128) std::atomic<uint32_t> doorbell;  // futex of the consumer
  std::atomic<uint32_t> consumerSleeping;
  std::atomic<uint32_t> isOpen;                 // 1 since a worker first consumed from it: each later worker consumes from it too
};

struct alignas(128) SegmentHeader {
  uint32_t magic, version;

  // The CUresult that ended a device's context, sticky; and the first error of a posted call that has not been reported yet.
  alignas(128) std::atomic<int32_t> fault[maxDevices];
  alignas(128) std::atomic<int32_t> deferred[maxDevices];

  // 1 if the present worker has an image store: a program then asks for an image by its digest before it sends it.
  alignas(128) std::atomic<uint32_t> storesImages;
  // Whether the worker has output of kernels' printf to deliver.
  std::atomic<uint32_t> outputWaits;

  // When launches are folded into graphs, if the program chooses: a FoldMode (fold-mode.h). The program writes it, once.
  std::atomic<uint32_t> fold;

  // Whether a worker that has restored the session may consume, or consumes already: handover.h.
  alignas(128) std::atomic<uint64_t> handover;

  RingHeader rings[maxDevices];  // by device
};

struct alignas(64) SlabState {
  // 0: free; else the generation under which the program has taken it. Reset to 0 by the program, or by the GPU when a copy from it is
  // done.
  std::atomic<uint32_t> busy;
};

struct alignas(64) CompletionWord {
  std::atomic<uint64_t> done;      // sequence number of the last record or fence in this stream that the GPU has passed
  std::atomic<uint64_t> answered;  // the GPU waits on it for a host function: the program writes it
};

struct SegmentLayout {
  static constexpr uint64_t slots = 8 * KiB;
  static constexpr uint64_t replies = slots + slotCount * sizeof(Slot);
  static constexpr uint64_t events = replies + replyCount * replyBytes;
  static constexpr uint64_t slabStates = events + completionWordCount * sizeof(CompletionWord);
  static constexpr uint64_t slabs = roundUp(slabStates + slabCount * sizeof(SlabState), 64 * KiB);
  // What the GPU accesses lies before the rings: the part before the slabs is registered with the driver at once, slabs at first use, so
  // that unused slabs and rings take no memory.
  static constexpr uint64_t rings = slabs + slabCount * slabBytes;
  static constexpr uint64_t bytes = rings + maxDevices * ringBytes;
};
static_assert(sizeof(SegmentHeader) <= SegmentLayout::slots);

// Takes ownership of `fd`, which came from an untrusted process: a sealed memfd, or the piece at the descriptor's position
// (MemoryFile::adoptPiece). Throws kj::Exception.
MemoryFile adoptSegment(int fd);

// A mapped segment. Each ring is also mapped twice in succession at another address, so that a frame is always contiguous.
class Segment {
 public:
  static MemoryFile create();  // with headers set and rings zero
  // Makes an empty segment of zeroed memory.
  static void prepare(const MemoryFile& file);
  // Maps `file`; checks magic and version. Throws kj::Exception.
  explicit Segment(const MemoryFile& file);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  SegmentHeader& header() const;
  Slot& slot(uint64_t index) const;            // index < slotCount
  std::byte* reply(uint64_t slot) const;      // replyBytes; slot < replyCount
  CompletionWord& completionWord(uint64_t index) const;  // index < completionWordCount
  SlabState& slabState(uint64_t index) const;  // index < slabCount
  std::byte* slab(uint64_t index) const;
  RingHeader& ring(unsigned device) const;     // device < maxDevices
  std::byte* ringAt(unsigned device, uint64_t position) const;  // ringBytes are contiguous from there
  // Makes the system allocate a ring's pages now; otherwise every thirtieth of the first 30,000 launches would pay for a page fault.
  void populateRing(unsigned device) const;
  std::byte* base() const { return start; }
  // How the two sides wake each other: by polling if the segment is a piece of a virtual machine's memory.
  Waking waking() const { return way; }

 private:
  const Waking way;
  std::byte* start = nullptr;
  std::byte* mirrored = nullptr;
};

}  // namespace vgpu
