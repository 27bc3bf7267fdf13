// The worker's side of a mirror: writes the program's frames, and the slabs that they read, into the segment that the worker
// shares, and reports what the worker and the GPU write there.
//
// Owned by the relay beside the worker; used by one thread. Only what frames have made outstanding is looked at: the slots on
// which their calls wait, the completion words and the slabs that they name, as the table says (vgpu/api/effects.h). What the
// link brings is not trusted: positions, sizes and numbers are checked before the segment is touched; the frames themselves the
// worker checks. Lives as long as the program, over suspends too.
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

  // Writes what a message says into the segment. False if it is none of the mirror's.
  bool apply(const LinkMessage& message);
  // Reports what has changed, as far as the link takes it. Whether anything has.
  bool send();
  // Whether anything is outstanding: then send() should be called often.
  bool isExpecting() const;
  // Whether graphs write completion words at any time: then it should be called now and then.
  bool isWatching() const { return watches; }

 private:
  // A frame whose slot is not done yet, with what it writes for the program.
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
    uint64_t seen = 0;           // `done`, as send() has read it
  };
  struct WordState {
    uint64_t reported, seen;
    std::deque<uint64_t> awaited;  // sequence numbers, of one ring
    unsigned device = 0;           // of the frames that await it
    bool later = false;            // graphs write into it, at any time
  };
  // What send() has read at its beginning.
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
  std::array<uint64_t, maxDevices> written{}, tails{};  // up to where frames were written; tails as they were reported
  std::array<int32_t, maxDevices> faults{};             // as they were reported
  mirror::Flags flags{};
  uint64_t handover = 0;
  std::unordered_map<uint16_t, SlotState> slots;  // with frames that are not done
  std::vector<uint8_t> slotDevice;                // for whose ring each slot was last used
  std::map<uint32_t, WordState> completions;      // that frames have named
  std::vector<std::pair<uint64_t, uint32_t>> due;  // numbers that words have come to
  std::map<uint32_t, uint32_t> lent;              // slab -> generation, until the GPU has read it
  size_t wordsAwaited = 0;
  bool watches = false;
};

}  // namespace vgpu
