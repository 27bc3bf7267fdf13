// A session's control messages between a virtual machine and its host: a stream over the mailbox of its slot (vgpu/wire/guest-mailbox.h),
// which ends when the other side has released the slot.
//
// It has no descriptor and wakes nobody: each side polls at increasing intervals, up to 10 ms.
//
// The host can reset the mailbox (GuestSlot::begun), for a machine that was restored from a saved state. Each side then makes a new stream,
// and first says how many messages it has received, so that the link continues where it was (vgpu/wire/link.h).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "vgpu/control/byte-stream.h"
#include "vgpu/wire/guest-file.h"
#include "vgpu/wire/guest-mailbox.h"

namespace vgpu::relay {

// A session's part of a virtual machine's memory. The lock belongs to the descriptor and to all mappings of it.
struct GuestPlace {
  std::shared_ptr<GuestFile> file;
  uint64_t slot = 0;
  uint64_t claim = 0;        // the number with which the guest has claimed the slot
  kj::AutoCloseFd locked{};  // its file position is the beginning of the segment
  uint64_t begun = 0;        // number of resets of the mailbox by the host; in the guest, of those that it has followed
  std::string guest{};       // on the host: the machine's name

  GuestSlot& words() const { return file->slot(slot); }
  // The segment, with a descriptor that shares the lock and the position.
  MemoryFile segment() const;
};

class GuestStream final : public ByteStream {
 public:
  GuestStream(const GuestPlace& place, GuestFile::Side side);
  // For the host: resets the mailbox.
  static std::unique_ptr<GuestStream> beginAnew(GuestPlace& place);
  // The same for a machine that has come from another host, where another process served the session: adopts the slot's words in the table,
  // which are part of the machine's memory. `isAgain`: this was done before, and the machine has not answered; its memory may have been
  // loaded afterwards.
  static std::unique_ptr<GuestStream> beginHere(GuestPlace& place, bool isAgain);
  // For the guest: whether the host has reset the mailbox since this stream was made.
  bool isOutdated() const;
  uint64_t number() const { return begun; }
  // The first message on a stream after a reset: how many messages each side has received. `anotherLink`: everything sent so far went to
  // another process, and the link begins anew too.
  static constexpr uint64_t anotherLink = ~uint64_t{0};
  void sayReceived(uint64_t messages);
  std::optional<uint64_t> hearReceived();

  size_t read(std::span<std::byte> room) override;
  size_t write(std::span<const std::byte> bytes) override;
  int fd() const override { return -1; }
  short eventsOf(bool, bool) const override { return 0; }
  uint64_t mostSleep() const override;

 private:
  // Why the other side reads and writes nothing more; empty while it may.
  std::string whyGone() const;
  void note(size_t moved);

  const GuestPlace& place;
  const GuestFile::Side side;
  const uint64_t begun;  // GuestSlot::begun when this stream was made
  GuestMailbox mailbox;
  std::chrono::steady_clock::time_point moved = std::chrono::steady_clock::now();  // when a byte was last moved
};

}  // namespace vgpu::relay
