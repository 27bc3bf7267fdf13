// Who has which part of a virtual machine's memory (guest-file.h): locks of fcntl (F_OFD_SETLK), of the same range as in the file,
// but far behind its end, elsewhere for each side. They are the kernels' own, of host and guest each: neither side can take the
// other's, or free them.
//
// A lock is an open file's: who is passed a descriptor of it (SCM_RIGHTS, fork) has the lock too, and it lasts until nobody has
// that open file, or a mapping of it. All exclude each other. Any thread; no state here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace vgpu {

class GuestLocks {
 public:
  enum class Side : uint8_t { host, guest };
  struct Range {
    uint64_t place, bytes;  // of the memory
    constexpr uint64_t end() const { return place + bytes; }
  };

  // Through `file`, which is not owned.
  GuestLocks(int file, Side side) : file(file), side(side) {}

  // False if another open file has some of it. What this one has of it, it keeps. Throws kj::Exception.
  bool tryLock(const Range& range) const;
  void unlock(const Range& range) const;
  // Some of the range that is locked: through another open file; through any, this one included. It may reach beyond the range.
  std::optional<Range> findOthers(const Range& range) const;
  std::optional<Range> findAny(const Range& range) const;
  // What is locked of the range through this open file, in order.
  std::vector<Range> ours(const Range& range) const;

 private:
  std::optional<Range> find(int command, const Range& range) const;
  void collect(const Range& range, std::vector<Range>& found) const;

  const int file;
  const Side side;
};

}  // namespace vgpu
