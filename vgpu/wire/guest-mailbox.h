// The mailbox of a slot (guest-file.h): a connectionless byte stream in each direction between a virtual machine and its host.
//
// Each direction is a ring of bytes with two counters, of all bytes written and of all bytes read, each written by one side. Memory order:
// a side stores its counter with release after it has written the bytes, or copied them out; the other side loads it with acquire before it
// reads the bytes, or overwrites them. The other side is not trusted: each operation reads its counter once; a counter that goes back, or
// advances by more than the ring's size, throws kj::Exception; bytes are copied out before they are examined.
//
// One thread on each side. Never blocks, and does not wake the other side.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "vgpu/wire/guest-file.h"

namespace vgpu {

class GuestMailbox {
 public:
  // The mailbox of the slot whose segment is at the file position of `slot`; `begun` as in GuestSlot. Its memory has room for two streams,
  // used in turn at each reset, so that a side that has not noticed a reset yet writes into the old stream. Reads and writes nothing here.
  GuestMailbox(int slot, GuestFile::Side side, uint64_t begun);
  // For the host: resets the counters.
  void clear();
  ~GuestMailbox();
  GuestMailbox(const GuestMailbox&) = delete;
  GuestMailbox& operator=(const GuestMailbox&) = delete;

  // Both return the number of bytes moved, limited by what is available or fits.
  size_t read(std::span<std::byte> room);
  size_t write(std::span<const std::byte> bytes);

  static constexpr uint64_t ringBytes = 128 * KiB;

 private:
  struct Way;
  Way& way(unsigned index) const;
  std::byte* ringOf(unsigned index) const;

  std::byte* mapped = nullptr;
  std::byte* start = nullptr;              // the stream in use
  const unsigned in, out;                  // indexes of the two directions
  uint64_t taken = 0, given = 0;           // our own counters, which the other side cannot change
  uint64_t seenWritten = 0, seenRead = 0;  // the other side's counters, as last read
};

}  // namespace vgpu
