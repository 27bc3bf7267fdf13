#include "stub/emulator/ptx/run/shared-check.h"

#include "stub/emulator/ptx/lanes/instruction.h"

namespace vgpu::emulator {

void SharedCheck::begin(uint32_t checks, uint64_t bytes, uint32_t threads) {
  enabledChecks = checks;
  interval = 1;
  phases.assign((threads + laneCount - 1) / laneCount, 0);
  byteStates.assign(bytes, {});
}

SharedCheck::Moment SharedCheck::now(uint32_t thread) const {
  return {interval, phases[thread / laneCount], static_cast<uint16_t>(thread)};
}

// Whether nothing orders the access `earlier` before the present access by `thread`. `maybeOthers`: other threads of the same warp besides
// the recorded one may have made it.
bool SharedCheck::meets(const Moment& earlier, uint32_t thread, bool maybeOthers) const {
  if (earlier.interval != interval || (earlier.thread == thread && !maybeOthers)) return false;
  return earlier.thread / laneCount != thread / laneCount || earlier.phase == phases[thread / laneCount];
}

bool SharedCheck::meetsReaders(const Byte& byte, uint32_t thread) const {
  if (byte.readers == Readers::ofMany) return byte.read.interval == interval;
  return meets(byte.read, thread, byte.readers == Readers::ofOneWarp);
}

void SharedCheck::noteRead(Byte& byte, uint32_t thread) const {
  if (byte.read.interval != interval) {
    byte.readers = Readers::one;
  } else if (byte.read.thread / laneCount != thread / laneCount) {
    byte.readers = Readers::ofMany;
  } else if (byte.readers != Readers::ofMany) {
    // Reads in an earlier phase of the warp are ordered before this one.
    const bool same = byte.read.phase == phases[thread / laneCount];
    if (!same) byte.readers = Readers::one;
    if (same && byte.read.thread != thread) byte.readers = Readers::ofOneWarp;
  }
  byte.read = now(thread);
}

std::optional<SharedCheck::Finding> SharedCheck::touch(Access access, uint32_t thread, uint64_t offset, uint32_t bytes,
                                                       bool changesNothing) {
  const bool isOrdered = access == Access::orderedRead || access == Access::orderedWrite;
  if (isOrdered) ordered();
  const auto where = [&] {
    return std::to_string(bytes) + " bytes at offset " + std::to_string(offset) + " of shared memory";
  };
  for (uint64_t at = offset; at < offset + bytes; ++at) {
    Byte& byte = byteStates[at];
    const bool reads = access != Access::write && access != Access::orderedWrite;
    if (reads && !byte.written && (enabledChecks & checkUninitialized))
      return Finding{Fault::Kind::uninitializedShared,
                     where() + " are read, but no thread of the block has written byte " + std::to_string(at),
                     {}};
    if (enabledChecks & checkRaces && !isOrdered) {
      const bool bothAtomic = access == Access::update && byte.byAtomic;
      if (!bothAtomic && !changesNothing && meets(byte.write, thread))
        return Finding{Fault::Kind::sharedRace,
                       "a race on shared memory: " + where() + (writes(access) ? " are written" : " are read") +
                           ", which another thread wrote without synchronization in between",
                       byte.write.thread};
      if (writes(access) && !changesNothing && meetsReaders(byte, thread))
        return Finding{Fault::Kind::sharedRace,
                       "a race on shared memory: " + where() +
                           " are written, which another thread read without synchronization in between",
                       byte.readers == Readers::one ? std::optional<uint32_t>(byte.read.thread) : std::nullopt};
    }
    if (writes(access)) {
      if (!changesNothing || !byte.written) {
        byte.byAtomic = access == Access::update;
        byte.write = isOrdered ? Moment{} : now(thread);
      }
      byte.written = true;
    } else if (!isOrdered) {
      noteRead(byte, thread);
    }
  }
  return std::nullopt;
}

}  // namespace vgpu::emulator
