// The mailbox of a slot (guest-file.h): a stream of bytes each way between a virtual machine and its host, without a connection.
//
// Each way is a ring of bytes with two counters, of all bytes written and of all read, each written by one side. Memory order: a
// counter is stored with release after the bytes are written, or copied out, and loaded with acquire before they are read, or
// overwritten. The other side is not trusted: of its memory a counter is read once for each operation, and one that goes back, or
// further than the ring is large, throws kj::Exception; bytes are copied out before anybody looks at them.
//
// One thread on each side. Nothing here waits, or wakes the other side.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "vgpu/wire/guest-file.h"

namespace vgpu {

class GuestMailbox {
 public:
  // Of the slot whose segment is at the position of `slot`; `begun` as GuestSlot has it. Two take turns, so that whoever has not
  // noticed yet that there is another one writes into the old one. Nothing has been written or read.
  GuestMailbox(int slot, GuestFile::Side side, uint64_t begun);
  // Of the host: makes it so.
  void clear();
  ~GuestMailbox();
  GuestMailbox(const GuestMailbox&) = delete;
  GuestMailbox& operator=(const GuestMailbox&) = delete;

  // Both return how many bytes were moved: as many as there are, or have room.
  size_t read(std::span<std::byte> room);
  size_t write(std::span<const std::byte> bytes);

  static constexpr uint64_t ringBytes = 128 * KiB;

 private:
  struct Way;
  Way& way(unsigned index) const;
  std::byte* ringOf(unsigned index) const;

  std::byte* mapped = nullptr;
  std::byte* start = nullptr;              // of the one whose turn it is
  const unsigned in, out;                  // of the two ways
  uint64_t taken = 0, given = 0;           // our own counters, which the other side cannot change
  uint64_t seenWritten = 0, seenRead = 0;  // the other side's, as they were last
};

}  // namespace vgpu
