// Replaces pages of the program's own memory by pages of the host arena, at the same addresses and while its threads run.
//
// The bytes are copied into the arena's file, and the file is mapped over the pages. A thread that writes meanwhile would
// write into the old page after it was copied, so a piece is write-protected for as long as its copy takes
// (write-protection.h): a thread that writes into it waits, and its write then goes to the new page. Pieces are small so
// that this is short. If the system has no such protection, pages are not adopted, but for those that nobody may write.
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
  adoptable,      // private, all of it writable, without a file or a stack
  readOnly,       // private, and nobody may write it
  otherReadOnly,  // otherwise, and some of it nobody may write
  other,          // otherwise
  unmapped        // not all of it can be read
};
PageKind kindOfPages(uint64_t address, uint64_t bytes);

// Maps the arena's pages at the addresses, with the same bytes. False if the system refuses a part; the others are replaced then,
// and returnPages() restores all.
bool adoptPages(const AdoptedPages& pages, const MemoryFile& arena);

// Private memory again, with the same bytes and protection, wherever these are mapped: the program may have unmapped, protected or moved
// some. False if the system refuses a part, which is the arena's still; it may be tried again.
bool returnPages(const AdoptedPages& pages, const MemoryFile& arena);

// The same in a child made by fork(), which has one thread: afterwards it shares nothing with its parent.
bool returnPagesInChild(const AdoptedPages& pages, const MemoryFile& arena);

}  // namespace vgpu::client
