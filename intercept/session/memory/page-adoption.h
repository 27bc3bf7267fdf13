// Replaces pages of the program's own memory by pages of the host arena, at the same addresses, while its threads run.
//
// The bytes are copied into the arena's file, and the file is mapped over the pages. A thread that writes meanwhile would write to the old
// page after it was copied, so each piece is write-protected while it is copied (write-protection.h): a thread that writes to it waits, and
// its write then goes to the new page. Pieces are small, so that the wait is short. If the system lacks such protection, only read-only
// pages are adopted.
//
// Any thread.
#pragma once

#include <cstdint>

#include "vgpu/base/memory-file.h"

namespace vgpu::client {

// Whole pages of this process and the part of the host arena that replaces them.
struct AdoptedPages {
  uint64_t address, bytes, arenaAddress;
  bool areReadOnly = false;
};

// What is mapped in [address, address + bytes).
enum class PageKind {
  adoptable,      // private, all writable, neither a file's nor a stack
  readOnly,       // private, all read-only
  otherReadOnly,  // other, some of it read-only
  other,          // other, all writable
  unmapped        // not all of it can be read
};
PageKind kindOfPages(uint64_t address, uint64_t bytes);

// Maps the arena's pages at the addresses, with the same bytes. False if the system refuses for some pages; the others are then replaced
// already, and returnPages() restores all.
bool adoptPages(const AdoptedPages& pages, const MemoryFile& arena);

// Makes the pages private again, with the same bytes and protection, wherever they are mapped: the program may have unmapped, protected or
// moved some. False if the system refuses for some pages, which stay the arena's; it may be tried again.
bool returnPages(const AdoptedPages& pages, const MemoryFile& arena);

// The same in a child of fork(), which has one thread: afterwards it shares nothing with its parent.
bool returnPagesInChild(const AdoptedPages& pages, const MemoryFile& arena);

}  // namespace vgpu::client
