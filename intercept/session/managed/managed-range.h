// A piece of managed memory: one address, and two copies of its bytes, in memory of a device, which all devices of the session
// use, and in pages of the program. Of each block, the program may access its pages, or the device has the newer bytes.
//
// Plain state of ManagedMemory, which synchronizes it. Stays in the program's process over a suspend, as its pages do.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "intercept/session/managed/host-pages.h"

namespace vgpu::client {

struct ByteSpan {
  uint64_t address = 0, bytes = 0;
  uint64_t end() const { return address + bytes; }
};

class ManagedRange {
 public:
  // Whole pages.
  ManagedRange(HostPages pages, ByteSpan place, unsigned device, uint64_t blockBytes);

  const ByteSpan place;
  const unsigned device;
  HostPages pages;
  // The worker's are the same, unless the session has left the program's host.
  bool hasSamePages = false;
  // What of the place has a copy on the device: all of an allocation; of the pages around variables, these. A variable that modules
  // of several devices share is there once for each.
  struct Shared {
    ByteSpan span;
    uint64_t module = 0;
  };
  std::vector<Shared> shared;
  // Until a device may have written it: how much work the devices had been given when this was made. What the device has are zeros.
  std::optional<uint64_t> zeroUntil;

  // Blocks with the same access, from first to last.
  struct Run {
    size_t begin = 0, end = 0;
    HostAccess access = HostAccess::none;
  };
  HostAccess accessAt(uint64_t address) const { return blocks[blockOf(address)]; }
  ByteSpan spanOf(const Run& run) const;
  // The run that a touch of `address` brings: the block there, and behind it more at a time if the program goes through memory
  // from block to block. All have the access that this block has.
  Run touched(uint64_t address);
  // The program will go through memory from `address` on.
  void expect(uint64_t address);
  // Calls `visit` for each run of what the program may access.
  template <typename Visit>
  void forAccessible(Visit visit) const {
    for (size_t begin = 0; begin < blocks.size();) {
      size_t end = begin + 1;
      while (end < blocks.size() && blocks[end] == blocks[begin]) ++end;
      if (blocks[begin] != HostAccess::none) visit(Run{begin, end, blocks[begin]});
      begin = end;
    }
  }
  // What the program may do from now on. False if the system refuses, and it may do what it could.
  bool allow(const Run& run, HostAccess access);
  // The same of all blocks: one mapping, which the system never refuses.
  void allowAll(HostAccess access);

 private:
  size_t blockOf(uint64_t address) const { return (address - place.address) / blockBytes; }

  const uint64_t blockBytes;
  std::vector<HostAccess> blocks;
  size_t expected = SIZE_MAX, ahead = 1;  // the block that a program which goes on touches next, and how many it gets then
};

}  // namespace vgpu::client
