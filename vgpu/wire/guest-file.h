// The memory that a virtual machine shares with its host: a file on the host, the BAR of an ivshmem-plain device in the guest.
// docs/virtual-machines.md draws it.
//
//   header · table of slots · slot 0: mailbox · segment | slot 1 | …
//                                      … | pinned memory of the sessions
//
// A slot serves one session of a program in the guest: its control messages pass through the mailbox (guest-mailbox.h), its calls through
// the segment (segment.h), which the worker maps too. vgpud makes the file and writes the header; vgpu-relay serves the slots
// (tools/relay/). The file's second half is given to slots and to pieces of the sessions' pinned memory in the order of demand. A worker
// maps only its own session's slot and pieces.
//
// The guest is not trusted: it can write every byte at any time. Of what the guest writes, the host reads only a slot's words `claimed` and
// `released` and the mailboxes; it computes the number and places of the slots from the file's size.
//
// Ownership of a slot: `claimed` holds a number drawn by the guest, from when it takes the slot until the host frees the slot.
//   guest: lock; claimed 0 -> n (compare-and-swap) · waits for served == n · … · released = n, or its processes end
//   host:  claimed is n: lock; zeroes mailbox and segment; served = n · … · ended = n · when no process of the host uses the segment any
//          more: zeroes it; claimed n -> 0
// After a saved machine is restored, its memory has its old content but the host's end of the mailbox is new, so the host resets the
// mailbox. Each number is used once, so a word that is written late does not affect the slot's next session. The locks (guest-locks.h) last
// as long as any process has that slot open or mapped. So a slot becomes free only when neither a worker nor a program can still write to
// it.
//
// Pieces of pinned memory belong to a session in the same way: to the open file that holds the lock of its slot. There is no table of
// pieces:
//   guest: lock · asks the worker for this particular piece (hostPiece) · … · unlock
//   host:  lock: zeroes it, unless the session had it already · … · zeroes it, unlock
#pragma once

#include <kj/io.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vgpu/base/memory-file.h"
#include "vgpu/wire/guest-locks.h"
#include "vgpu/wire/segment.h"

namespace vgpu {

constexpr uint64_t guestMagic = 0x4d45'4d56'5550'4756;  // "VGPUVMEM"
constexpr uint32_t guestVersion = 2;

struct GuestHeader {
  uint64_t magic;  // written last
  uint32_t version, segmentVersion;
  uint64_t fileBytes, slotBytes;
  uint32_t slots;
  std::atomic<uint32_t> gpus;     // the number that a program of the guest sees
  std::atomic<uint32_t> runsPtx;  // 1: the GPUs are emulated, and run PTX
  uint32_t reserved;
  std::atomic<uint64_t> beats;  // changes at least once a second while a vgpud serves this memory
};

struct alignas(128) GuestSlot {
  std::atomic<uint64_t> claimed, released;   // written by the guest; the host resets `claimed` to 0
  alignas(64) std::atomic<uint64_t> served;  // written by the host, as are the next members
  std::atomic<uint64_t> ended;
  std::atomic<uint64_t> begun;  // how often the host has reset the mailbox in this session
};
static_assert(sizeof(GuestSlot) == 128);

struct GuestLayout {
  static constexpr uint64_t table = 4 * KiB;
  static constexpr uint64_t firstSlot = 2 * MiB;
  static constexpr uint64_t mailboxBytes = 1 * MiB;  // the segment follows it
  static constexpr uint64_t slotBytes = roundUp(mailboxBytes + SegmentLayout::bytes, 2 * MiB);
  static constexpr uint64_t mostSlots = 4096;
  static constexpr uint64_t leastBytes = 256 * MiB;  // least size of the file; a power of two, as a BAR's size is

  static constexpr uint64_t slots(uint64_t fileBytes) {
    return fileBytes < firstSlot ? 0 : std::min(mostSlots, (fileBytes - firstSlot) / slotBytes);
  }
  static constexpr uint64_t slotAt(uint64_t slot) { return firstSlot + slot * slotBytes; }
  static constexpr GuestLocks::Range slot(uint64_t slot) { return {slotAt(slot), slotBytes}; }

  // Pieces of pinned memory are multiples of this unit, in this part of the file.
  static constexpr uint64_t granule = leaseGranularity;
  static constexpr GuestLocks::Range pieces(uint64_t fileBytes) { return {fileBytes / 2, fileBytes - fileBytes / 2}; }
  static constexpr bool isPiece(const GuestLocks::Range& piece, uint64_t fileBytes) {
    return piece.bytes != 0 && piece.place % granule == 0 && piece.bytes % granule == 0 && piece.bytes <= fileBytes &&
           piece.place >= pieces(fileBytes).place && piece.place <= fileBytes - piece.bytes;
  }
  static constexpr uint64_t slotOf(uint64_t segmentAt) { return (segmentAt - mailboxBytes - firstSlot) / slotBytes; }
};
static_assert(GuestLayout::table + GuestLayout::mostSlots * sizeof(GuestSlot) <= GuestLayout::firstSlot);
static_assert(sizeof(GuestHeader) <= GuestLayout::table);

// The mapped header and table of slots.
class GuestFile {
 public:
  using Side = GuestLocks::Side;

  // For the host: opens the file, or makes it with a size of `bytes` (0: 2 GiB for a new file, any size for an existing one). Throws
  // kj::Exception if it cannot be the memory of a virtual machine, or belongs to another version.
  static kj::AutoCloseFd make(const std::string& path, uint64_t bytes);
  // Opens the file again: the new descriptor has locks and a position of its own.
  static kj::AutoCloseFd reopen(int fd);

  // `file`: in a guest, the device. Throws kj::Exception if the file has no such header, or one of another version.
  GuestFile(kj::AutoCloseFd file, Side side);
  ~GuestFile();
  GuestFile(const GuestFile&) = delete;
  GuestFile& operator=(const GuestFile&) = delete;

  // For the host: writes the header again, whatever the guest has written there.
  void writeHeader(uint32_t gpus, bool runsPtx) const;
  GuestHeader& header() const;
  uint64_t fileBytes() const { return bytes; }
  uint64_t slots() const { return count; }
  GuestSlot& slot(uint64_t index) const;  // index < slots()

  // Locks a slot for our side through a new descriptor, whose position is the beginning of the slot's segment. Returns nothing if the slot
  // is locked already.
  std::optional<kj::AutoCloseFd> lock(uint64_t slot) const;
  // Whether anybody on our side has locked the slot.
  bool isLocked(uint64_t slot) const;
  // For the host: zeroes mailbox and segment.
  void clear(uint64_t slot) const;
  // For the host, when a session's program has ended: zeroes the pinned memory of the session that has locked its slot with `locked`.
  void clearPieces(uint64_t slot, int locked) const;
  // For the guest: writes a word of each page of the slot, of its part of the table, and of the session's pinned memory, without changing
  // its value. A hypervisor that migrates the machine sends only pages that the guest has written; it does not know what the host has
  // written.
  void rewrite(uint64_t slot, int locked) const;

 private:
  std::vector<GuestLocks::Range> piecesOf(uint64_t slot, int locked) const;
  void clear(const GuestLocks::Range& range) const;
  void rewrite(const GuestLocks::Range& range) const;
  const kj::AutoCloseFd file;
  const Side side;
  const uint64_t bytes;
  std::byte* start = nullptr;
  uint64_t count = 0;
};

}  // namespace vgpu
