// The program's side of a mirror: sends what the program writes into its segment, and writes there what the worker's side
// reports.
//
// Owned by the relay beside the program; used by one thread. The program's memory is not trusted, nor is what the link brings:
// both are checked, and what is impossible throws kj::Exception, after which the session must end. Lives as long as the program,
// over suspends too: positions go on.
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

  // To a worker's side whose segment is new, of a session that is not: tells where the rings and the completion words are. First.
  void introduce();
  // Sends what there is to send, as far as the link takes it. Whether there was anything.
  bool send();
  // Whether everything that the program has reserved in its rings has been sent: always true in the end if its gate is closed.
  bool isDrained() const;
  // Writes what a message says into the segment. False if it is none of the mirror's.
  bool apply(const LinkMessage& message);

  // Has the program ring a bell at its next frame or answer. True if there is nothing to send: then the caller may sleep.
  bool prepareToSleep();
  void awake();
  // The bells: a change of any means that there may be something to send.
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
  std::vector<capnp::word> words;  // a frame's message, aligned
  uint32_t foldSent = 0;
  std::array<int32_t, maxDevices> faults{};  // as they were reported, and not cleared
  struct Answer {
    uint64_t asked = 0, sent = 0;  // the number that the GPU waits for, and the last that the program gave
  };
  std::map<uint32_t, Answer> answers;  // of words that a frame has named as answered
};

}  // namespace vgpu
