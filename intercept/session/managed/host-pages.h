// Memory of this process at two places: at a fixed address, where the program may access as much of it as it is allowed to, and
// at another one, where we always may.
//
// Owns both mappings. Any thread; not synchronized. A child of fork() has neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "intercept/session/managed/page-watch.h"
#include "vgpu/base/memory-file.h"

namespace vgpu::client {

class HostPages {
 public:
  // Zeros, which the program may not access. Whole pages. Nothing if something else is at that address, or the system has no
  // memory.
  static std::optional<HostPages> at(uint64_t address, uint64_t bytes);
  // Those that the program has there, shared memory of `file` from `offset` on, which it may access as before: its mapping becomes
  // this object's with take(). Whole pages. Nothing if the system has no memory.
  static std::optional<HostPages> of(uint64_t address, uint64_t bytes, const MemoryFile& file, uint64_t offset);
  // From now on the program may not access them.
  void take();
  HostPages(HostPages&& other) noexcept;
  HostPages& operator=(HostPages&&) = delete;
  ~HostPages();

  // From now on, of whole pages among them with which it could do `before`. False if the system has no memory for another mapping.
  bool allow(uint64_t address, uint64_t bytes, HostAccess before, HostAccess access) const;
  // It may do that already, but touches the page at `address` as if not: the system has dropped its entry.
  void allowAgain(uint64_t address, HostAccess access) const;

  // Where we access what the program sees at `address`.
  std::byte* ours(uint64_t address) const { return always + (address - first); }

 private:
  HostPages(uint64_t first, uint64_t bytes, std::byte* always) : first(first), bytes(bytes), always(always) {}

  uint64_t first, bytes;
  std::byte* always;     // nullptr: moved away
  bool isTaken = false;  // the mapping at the program's address is ours
  PageWatch* watch = nullptr;  // nullptr: by protection
};

}  // namespace vgpu::client
