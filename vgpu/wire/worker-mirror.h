// The worker's side of a mirror: writes the program's frames, and the slabs that they read, into the segment that the worker shares, and
// reports what the worker and the GPU write into it.
//
// Owned by the relay beside the worker; used by one thread. It examines only what frames have made outstanding: the slots on which their
// calls wait, and the completion words and slabs that they name, by the table (vgpu/api/effects.h). The link's messages are not trusted:
// positions, sizes and numbers are checked before the segment is touched; the worker checks the frames themselves. Lives as long as the
// program, across suspends too.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "vgpu/wire/link.h"
#include "vgpu/wire/mirror.h"
#include "vgpu/wire/ring.h"

namespace vgpu {

class WorkerMirror {
 public:
  WorkerMirror(const Segment& segment, Link& link);

  // Applies a message to the segment. Returns false if it is not one of the mirror's.
  bool apply(const LinkMessage& message);
  // Reports what has changed, as far as the link has room. Returns whether anything has changed.
  bool send();
  // Whether anything is outstanding, so that send() should be called often.
  bool isExpecting() const;
  // Whether graphs write completion words at any time, so that send() should be called now and then.
  bool isWatching() const { return watches; }

 private:
  // A frame whose slot is not done yet, and the slabs that it writes for the program.
  struct Awaited {
    uint64_t sequence;
    bool isCall;
    bool fillsReply = false;
    std::optional<uint32_t> filledSlab;
    uint32_t filledBytes = 0;
  };
  struct SlotState {
    unsigned device;
    std::deque<Awaited> frames;  // of one ring, in order
    uint64_t seen = 0;           // the last value of `done` that send() has read
  };
  struct WordState {
    uint64_t reported, seen;
    std::deque<uint64_t> awaited;  // sequence numbers of frames of one ring
    unsigned device = 0;           // whose frames await the word
    bool later = false;            // graphs write to it at any time
  };
  // What send() reads first.
  struct Seen {
    std::array<uint64_t, maxDevices> tails;
    std::array<int32_t, maxDevices> faults;
  };

  void applyFrames(std::span<const std::byte> payload);
  void applyFrame(unsigned device, std::span<const std::byte> frame);
  void expectSlot(const mirror::FrameStart& start, kj::ArrayPtr<const capnp::word> message);
  void lend(std::span<const std::byte> payload);
  void placeRing(std::span<const std::byte> payload);
  void placeWord(std::span<const std::byte> payload);

  void readWords();
  bool sendState();
  bool isLost(const Seen& seen, unsigned device, uint64_t sequence) const;
  bool sendSlots(const Seen& seen);
  void reportSlot(uint16_t index, const Awaited& frame);
  bool sendWords(const Seen& seen);
  bool sendSlabs();
  bool sendTails(const Seen& seen);

  const Segment& segment;
  Link& link;
  std::vector<std::unique_ptr<RingWriter>> rings;  // by device
  std::vector<capnp::word> words;
  std::array<uint64_t, maxDevices> written{}, tails{};  // the end of the frames written; tails as reported
  std::array<int32_t, maxDevices> faults{};             // as reported
  mirror::Flags flags{};
  uint64_t handover = 0;
  std::unordered_map<uint16_t, SlotState> slots;  // slots with frames that are not done
  std::vector<uint8_t> slotDevice;                // the device in whose ring each slot was last used
  std::map<uint32_t, WordState> completions;      // words that frames have named
  std::vector<std::pair<uint64_t, uint32_t>> due;  // values that words have reached
  std::map<uint32_t, uint32_t> lent;              // slab -> generation, until the GPU has finished reading it
  size_t wordsAwaited = 0;
  bool watches = false;
};

}  // namespace vgpu
