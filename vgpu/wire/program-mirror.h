// The program's side of a mirror: sends what the program writes into its segment, and writes the worker side's reports into it.
//
// Owned by the relay beside the program; used by one thread. Neither the program's memory nor the link's messages are trusted: both are
// checked, and an impossible value throws kj::Exception, after which the session must end. Lives as long as the program, across suspends
// too, because positions continue.
#pragma once

#include <capnp/common.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "vgpu/wire/link.h"
#include "vgpu/wire/mirror.h"
#include "vgpu/wire/ring-tap.h"

namespace vgpu {

class ProgramMirror {
 public:
  ProgramMirror(const Segment& segment, Link& link);

  // For a worker's side whose segment is new while the session is not: sends the places of the rings and the completion words. Call it
  // first.
  void introduce();
  // Sends what the program has written, as far as the link has room. Returns whether there was anything to send.
  bool send();
  // Whether everything that the program has reserved in its rings has been sent: if its gate is closed, this becomes true eventually.
  bool isDrained() const;
  // Applies a message to the segment. Returns false if it is not one of the mirror's.
  bool apply(const LinkMessage& message);

  // Makes the program ring a bell at its next frame or answer. Returns true if there is nothing to send, so that the caller may sleep.
  bool prepareToSleep();
  void awake();
  // The bells: a change of any of them means that there may be something to send.
  std::vector<std::atomic<uint32_t>*> bells() const;

 private:
  bool sendFrames(RingTap& tap, unsigned device);
  void sendSlabsOf(std::span<const std::byte> frame);
  void noteAnswered(std::span<const std::byte> frame);
  bool sendSettings();
  bool sendAnswers();
  void applySlot(std::span<const std::byte> payload);
  void applyWord(std::span<const std::byte> payload);
  void applySlab(MirrorMessage type, std::span<const std::byte> payload);
  void applyState(MirrorMessage type, std::span<const std::byte> payload);

  const Segment& segment;
  Link& link;
  std::array<std::unique_ptr<RingTap>, maxDevices> taps;
  std::vector<capnp::word> words;  // aligned copy of a frame's message
  uint32_t foldSent = 0;
  std::array<int32_t, maxDevices> faults{};  // as reported, until cleared
  struct Answer {
    uint64_t asked = 0, sent = 0;  // the number that the GPU waits for, and the last one that the program has written
  };
  std::map<uint32_t, Answer> answers;  // for words that a frame has marked as answered by the program
};

}  // namespace vgpu
