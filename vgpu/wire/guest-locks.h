// Ownership of parts of a virtual machine's memory (guest-file.h), by fcntl locks (F_OFD_SETLK). A lock covers the same range as the
// memory, shifted far beyond the file's end by a distance that differs between the sides. Host and guest each lock in their own kernel:
// neither side can take or release the other's locks.
//
// A lock belongs to an open file description: a process that gets the descriptor (SCM_RIGHTS, fork) holds the lock too, and it lasts until
// no process has that description open or mapped. All locks are exclusive. Any thread; this class has no state.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace vgpu {

class GuestLocks {
 public:
  enum class Side : uint8_t { host, guest };
  struct Range {
    uint64_t place, bytes;  // in the shared memory
    constexpr uint64_t end() const { return place + bytes; }
  };

  // `file` is not owned.
  GuestLocks(int file, Side side) : file(file), side(side) {}

  // Returns false if another open file description has locked a part of the range; locks that this one holds already are kept. Throws
  // kj::Exception.
  bool tryLock(const Range& range) const;
  void unlock(const Range& range) const;
  // One locked range that overlaps `range`, possibly extending beyond it: locked through another open file description; through any,
  // including this one.
  std::optional<Range> findOthers(const Range& range) const;
  std::optional<Range> findAny(const Range& range) const;
  // The parts of the range that are locked through this open file description, in order.
  std::vector<Range> ours(const Range& range) const;

 private:
  std::optional<Range> find(int command, const Range& range) const;
  void collect(const Range& range, std::vector<Range>& found) const;

  const int file;
  const Side side;
};

}  // namespace vgpu
