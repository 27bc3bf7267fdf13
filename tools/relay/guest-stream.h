// A session's control messages between a virtual machine and its host: the mailbox of its slot (vgpu/wire/guest-mailbox.h), which
// ends when the other side has given the slot up.
//
// It has no descriptor and wakes nobody: each side looks at increasing intervals, up to 10 ms.
//
// The host can begin it anew (GuestSlot::begun), for a machine that was saved and goes on. Then each side makes another stream,
// and says first how many messages it has received, so that the link goes on where it was (vgpu/wire/link.h).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "vgpu/control/byte-stream.h"
#include "vgpu/wire/guest-file.h"
#include "vgpu/wire/guest-mailbox.h"

namespace vgpu::relay {

// What a session has of a virtual machine's memory. The lock is held by the descriptor, and by whoever has it mapped.
struct GuestPlace {
  std::shared_ptr<GuestFile> file;
  uint64_t slot = 0;
  uint64_t claim = 0;        // the number by which the guest has the slot
  kj::AutoCloseFd locked{};  // its position is where the segment begins
  uint64_t begun = 0;        // how often the host has begun the mailbox anew; of the guest, as far as it has followed
  std::string guest{};       // the machine's name; of the host

  GuestSlot& words() const { return file->slot(slot); }
  // The segment, with a descriptor that shares the lock and the position.
  MemoryFile segment() const;
};

class GuestStream final : public ByteStream {
 public:
  GuestStream(const GuestPlace& place, GuestFile::Side side);
  // Of the host: begins it anew.
  static std::unique_ptr<GuestStream> beginAnew(GuestPlace& place);
  // The same for a machine that has come from another host, where the session had another process: takes the place in the table,
  // which the machine brings, as its own. `isAgain`: it has been done, and the machine has not answered; it may have been loaded
  // after that.
  static std::unique_ptr<GuestStream> beginHere(GuestPlace& place, bool isAgain);
  // Whether the host has begun it anew since this one was made. Of the guest.
  bool isOutdated() const;
  uint64_t number() const { return begun; }
  // In one that has been begun anew, the first that is said and heard: how many messages each side has received.
  // `anotherLink`: all that was sent so far went to another process, and the link begins anew too.
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
  const uint64_t begun;  // as GuestSlot::begun was when this one was made
  GuestMailbox mailbox;
  std::chrono::steady_clock::time_point moved = std::chrono::steady_clock::now();  // a byte, last
};

}  // namespace vgpu::relay
