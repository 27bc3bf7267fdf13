// Finds two errors with a block's shared memory that hardware does not report: bytes that are read before any thread of the block has
// written them, and unordered accesses to a byte by two threads, one of which writes.
//
// Time in a block is divided into intervals: a barrier, a fence, or a volatile, acquiring or releasing access begins the next one. Two
// threads that access a byte in one interval race, unless they belong to one warp that has synchronized in between. Anything that may order
// accesses counts as ordering them: every reported race is real, but some are missed. Threads that write the same value do not race, nor do
// atomics with each other.
//
// Owned by its block and used by its host thread; exists if the launch requests it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stub/emulator/ptx/run/interpreter.h"

namespace vgpu::emulator {

// How an instruction accesses memory. `ordered` accesses are intended to be concurrent with others.
enum class Access : uint8_t { read, write, update, orderedRead, orderedWrite };
constexpr bool writes(Access access) { return access != Access::read && access != Access::orderedRead; }

class SharedCheck {
 public:
  struct Finding {
    Fault::Kind kind;
    std::string what;
    std::optional<uint32_t> other;  // the other thread of a race, if known
  };

  // `checks` is Launch::checks.
  void begin(uint32_t checks, uint64_t bytes, uint32_t threads);
  // Thread `thread` accesses [offset, offset + bytes). `changesNothing`: it writes the value that is already there.
  std::optional<Finding> touch(Access, uint32_t thread, uint64_t offset, uint32_t bytes, bool changesNothing = false);
  // Orders everything before this call before everything after it: in the block, or among the threads of one warp.
  void ordered() { ++interval; }
  void orderedInWarp(uint32_t warp) { ++phases[warp]; }

 private:
  // Time and thread of an access; `phase` is that of the thread's warp.
  struct Moment {
    uint32_t interval = 0;  // 0: never
    uint32_t phase = 0;
    uint16_t thread = 0;
  };
  enum class Readers : uint8_t { one, ofOneWarp, ofMany };
  struct Byte {
    Moment write, read;  // the last ones
    Readers readers = Readers::one;
    bool written = false, byAtomic = false;
  };
  bool meets(const Moment& earlier, uint32_t thread, bool maybeOthers = false) const;
  bool meetsReaders(const Byte&, uint32_t thread) const;
  void noteRead(Byte&, uint32_t thread) const;
  Moment now(uint32_t thread) const;

  uint32_t enabledChecks = 0, interval = 1;
  std::vector<uint32_t> phases;  // of each warp
  std::vector<Byte> byteStates;
};

}  // namespace vgpu::emulator
