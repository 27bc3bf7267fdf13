// The memory that a virtual machine shares with its host: a file there, the BAR of an ivshmem-plain device in the guest.
// docs/virtual-machines.md draws it.
//
//   header · table of slots · slot 0: mailbox · segment | slot 1 | …
//                                      … | pinned memory of the sessions
//
// A slot is one session of a program in the guest: its control messages pass through the mailbox (guest-mailbox.h), its calls
// through the segment (segment.h), which the worker maps too. vgpud makes the file and writes the header; vgpu-relay serves the
// slots (tools/relay/). The file's second half is for slots and for pieces of the sessions' pinned memory, whoever is first. A
// worker maps its own session's slot and pieces alone.
//
// The guest is not trusted: it can write every byte at any time. The host reads of it the words `claimed` and `released` of a
// slot and the mailboxes; how many slots there are, and where, it knows from the file's size.
//
// Who has a slot: a number that the guest has drawn, in `claimed` from when it takes the slot until the host gives it free again.
//   guest: lock; claimed 0 -> n (compare-and-set) · waits for served == n · … · released = n, or its processes end
//   host:  claimed is n: lock; zeroes mailbox and segment; served = n · … · ended = n · when nobody on the host has the segment
//          any more: zeroes it; claimed n -> 0
// When a machine has been saved and goes on, its memory is what it was, and the host's mailbox was not: then the host begins it
// anew. Each number is used once, so a word that is written late says nothing of the slot's next session. The locks (guest-locks.h)
// last as long as any process has that slot open or mapped. So a slot is nobody's only if neither a worker nor a program can still
// write to it.
//
// Pieces of pinned memory are a session's in the same way, by the open file that has its slot's lock, and there is no table of them:
//   guest: lock · asks the worker for that very piece (hostPiece) · … · unlock
//   host:  lock: zeroes it, unless the session had it · … · zeroes it, unlock
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
  std::atomic<uint32_t> gpus;     // that a program of the guest sees
  std::atomic<uint32_t> runsPtx;  // 1: they are emulated, and run PTX
  uint32_t reserved;
  std::atomic<uint64_t> beats;  // changes at least once a second while a vgpud serves this memory
};

struct alignas(128) GuestSlot {
  std::atomic<uint64_t> claimed, released;   // written by the guest; `claimed` back to 0 by the host
  alignas(64) std::atomic<uint64_t> served;  // by the host, as the next
  std::atomic<uint64_t> ended;
  std::atomic<uint64_t> begun;  // how often the host has begun the mailbox anew, in this session
};
static_assert(sizeof(GuestSlot) == 128);

struct GuestLayout {
  static constexpr uint64_t table = 4 * KiB;
  static constexpr uint64_t firstSlot = 2 * MiB;
  static constexpr uint64_t mailboxBytes = 1 * MiB;  // the segment is behind it
  static constexpr uint64_t slotBytes = roundUp(mailboxBytes + SegmentLayout::bytes, 2 * MiB);
  static constexpr uint64_t mostSlots = 4096;
  static constexpr uint64_t leastBytes = 256 * MiB;  // of a file; a power of two, as a BAR is

  static constexpr uint64_t slots(uint64_t fileBytes) {
    return fileBytes < firstSlot ? 0 : std::min(mostSlots, (fileBytes - firstSlot) / slotBytes);
  }
  static constexpr uint64_t slotAt(uint64_t slot) { return firstSlot + slot * slotBytes; }
  static constexpr GuestLocks::Range slot(uint64_t slot) { return {slotAt(slot), slotBytes}; }

  // Pieces of pinned memory are whole granules of this part of the file.
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

// Header and table, mapped.
class GuestFile {
 public:
  using Side = GuestLocks::Side;

  // On the host: makes the file if there is none, of `bytes` (0: 2 GiB, or as it is). Throws kj::Exception if it cannot be the
  // memory of a virtual machine, or is that of another version.
  static kj::AutoCloseFd make(const std::string& path, uint64_t bytes);
  // Opens it again: locks and the position of the descriptor are its own.
  static kj::AutoCloseFd reopen(int fd);

  // `file`: of a guest, the device. Throws kj::Exception if it has no such header, or one of another version.
  GuestFile(kj::AutoCloseFd file, Side side);
  ~GuestFile();
  GuestFile(const GuestFile&) = delete;
  GuestFile& operator=(const GuestFile&) = delete;

  // Of the host: writes it as it was, whatever the guest has written there.
  void writeHeader(uint32_t gpus, bool runsPtx) const;
  GuestHeader& header() const;
  uint64_t fileBytes() const { return bytes; }
  uint64_t slots() const { return count; }
  GuestSlot& slot(uint64_t index) const;  // index < slots()

  // Takes the lock of our side on a slot, with a descriptor of its own, whose position is where the slot's segment begins.
  // Nothing if somebody has it.
  std::optional<kj::AutoCloseFd> lock(uint64_t slot) const;
  // Whether somebody of our side has it.
  bool isLocked(uint64_t slot) const;
  // Zeroes mailbox and segment. Of the host.
  void clear(uint64_t slot) const;
  // Zeroes the pinned memory of the session that has locked its slot with `locked`. Of the host, when its program has ended.
  void clearPieces(uint64_t slot, int locked) const;
  // Of the guest: writes a word of each page of the slot, of its part of the table, and of the session's pinned memory, without
  // changing it. A hypervisor that migrates the machine does not know what the host has written there, and sends pages that the
  // guest has written.
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
