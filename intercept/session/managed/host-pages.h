// Memory with two mappings in this process: at a fixed address, where the program has the access that it is allowed, and at another
// address, where the session always has access.
//
// Owns both mappings. Any thread; not synchronized. A child of fork() inherits neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "intercept/session/managed/page-watch.h"
#include "vgpu/base/memory-file.h"

namespace vgpu::client {

class HostPages {
 public:
  // New zeroed whole pages at `address`, which the program may not access yet. Nothing if something else is mapped there, or the system has
  // no memory.
  static std::optional<HostPages> at(uint64_t address, uint64_t bytes);
  // The whole pages that the program has at `address`, a mapping of `file` at `offset`. The program's access stays until take(), which
  // makes its mapping this object's. Nothing if the system has no memory.
  static std::optional<HostPages> of(uint64_t address, uint64_t bytes, const MemoryFile& file, uint64_t offset);
  // From now on the program may not access the pages.
  void take();
  HostPages(HostPages&& other) noexcept;
  HostPages& operator=(HostPages&&) = delete;
  ~HostPages();

  // Sets the program's access to whole pages, which was `before`. False if the system has no memory for another mapping.
  bool allow(uint64_t address, uint64_t bytes, HostAccess before, HostAccess access) const;
  // Restores the mapping of the page at `address`, which the program may access: the system has dropped its page-table entry.
  void allowAgain(uint64_t address, HostAccess access) const;

  // Whether the pages are watched by userfaultfd: then the kernel touches them too, in system calls.
  bool isWatched() const { return watch != nullptr; }

  // The session's address of the byte that the program sees at `address`.
  std::byte* ours(uint64_t address) const { return always + (address - first); }

 private:
  HostPages(uint64_t first, uint64_t bytes, std::byte* always) : first(first), bytes(bytes), always(always) {}

  uint64_t first, bytes;
  std::byte* always;     // nullptr: moved from
  bool isTaken = false;  // whether this object owns the mapping at the program's address
  PageWatch* watch = nullptr;  // nullptr: page protection is used
};

}  // namespace vgpu::client
