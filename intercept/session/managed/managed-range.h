// A piece of managed memory: one address, and two copies of its bytes, in memory of a device, which all devices of the session
// use, and in pages of the program. Each page the program may access, or the device has the newer bytes of it.
//
// Plain state of ManagedMemory, which synchronizes it. Stays in the program's process over a suspend, as its pages do.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "intercept/session/managed/host-pages.h"
#include "vgpu/base/sizes.h"

namespace vgpu::client {

struct ByteSpan {
  uint64_t address = 0, bytes = 0;
  uint64_t end() const { return address + bytes; }
};

class ManagedRange {
 public:
  // Whole pages.
  ManagedRange(HostPages pages, ByteSpan place, unsigned device);

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

  // Pages with the same access, from first to last.
  struct Run {
    size_t begin = 0, end = 0;
    HostAccess access = HostAccess::none;
  };
  HostAccess accessAt(uint64_t address) const { return pageAccess[pageOf(address)]; }
  ByteSpan spanOf(const Run& run) const;
  // What a touch of `address` brings: the page there, if one touch was all the last time or nobody knows yet, else the 64 KiB
  // around it, and behind them more at a time if the program goes through memory. All have the access that this page has.
  Run touched(uint64_t address);
  // The program will go through memory from `address` on.
  void expect(uint64_t address);
  // Whether the program may access any page.
  bool isOpen() const { return !opened.empty(); }
  // Calls `visit` for each run of what the program may access: as many as it has touched, whatever the size of the range.
  template <typename Visit>
  void forAccessible(Visit visit) {
    joinOpened();
    for (auto& part : opened)
      for (size_t begin = part.begin, end = begin; begin < part.end; begin = end) {
        while (end < part.end && pageAccess[end] == pageAccess[begin]) ++end;
        visit(Run{begin, end, pageAccess[begin]});
      }
  }
  // What the program may do from now on. False if the system refuses, and it may do what it could.
  bool allow(const Run& run, HostAccess access);
  // It may access nothing any more: one mapping, which the system never refuses.
  void takeAll();

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  size_t pageOf(uint64_t address) const { return (address - place.address) / hostPageBytes; }
  void joinOpened();

  const size_t pageCount;
  // Zeros, which have no memory until a page is opened.
  std::unique_ptr<HostAccess[], Free> pageAccess;
  std::vector<Run> opened;  // since all was taken
  unsigned touches = 0, touchesBefore = 1;  // since all was taken, and the last time
  size_t expected = SIZE_MAX, ahead = 1;    // the page that a program which goes on touches next, and how many it got last
};

}  // namespace vgpu::client
