// A piece of managed memory: one address and two copies of its bytes, one in memory of a device, which all devices of the session use, and
// one in pages of the program. For each page, either the program has access, or the device has the newer bytes.
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
  // `place`: whole pages.
  ManagedRange(HostPages pages, ByteSpan place, unsigned device);

  const ByteSpan place;
  const unsigned device;
  HostPages pages;
  // Whether the worker has the same pages, unless the session has left the program's host.
  bool hasSamePages = false;
  // The parts that have a copy on the device: a whole allocation, or the variables in the pages. A variable that modules of several devices
  // share is listed once for each.
  struct Shared {
    ByteSpan span;
    uint64_t module = 0;
  };
  std::vector<Shared> shared;
  // While no device may have written it: how much work the devices had been given when this range was made. The device's bytes are zeros.
  std::optional<uint64_t> zeroUntil;

  // Pages [begin, end) with the same access.
  struct Run {
    size_t begin = 0, end = 0;
    HostAccess access = HostAccess::none;
  };
  HostAccess accessAt(uint64_t address) const { return pageAccess[pageOf(address)]; }
  ByteSpan spanOf(const Run& run) const;
  // What a touch of `address` brings: only its page, for the first touch or if the last time there was just one; else the 64 KiB around it,
  // and increasing amounts after it if the program walks through memory. All of these pages have the same access before. Watched pages
  // never come alone: a system call touches many, and the launches of other threads take them away meanwhile.
  Run touched(uint64_t address);
  // The program will walk through memory from `address` on.
  void expect(uint64_t address);
  // Whether the program has access to any page.
  bool isOpen() const { return !opened.empty(); }
  // Calls `visit` for each run of accessible pages: the cost depends on the touches, not on the size of the range.
  template <typename Visit>
  void forAccessible(Visit visit) {
    joinOpened();
    for (auto& part : opened)
      for (size_t begin = part.begin, end = begin; begin < part.end; begin = end) {
        while (end < part.end && pageAccess[end] == pageAccess[begin]) ++end;
        visit(Run{begin, end, pageAccess[begin]});
      }
  }
  // Sets the program's access. False if the system refuses; the access is then unchanged.
  bool allow(const Run& run, HostAccess access);
  // Removes the program's access to all pages: leaves one mapping, which the system never refuses.
  void takeAll();

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  size_t pageOf(uint64_t address) const { return (address - place.address) / hostPageBytes; }
  void joinOpened();

  const size_t pageCount;
  // Zeros, without physical memory until a page is opened.
  std::unique_ptr<HostAccess[], Free> pageAccess;
  std::vector<Run> opened;  // since takeAll()
  unsigned touches = 0, touchesBefore = 1;  // since takeAll(), and before it
  size_t expected = SIZE_MAX, ahead = 1;    // the next page in a walk through memory, and how many pages the last touch brought
};

}  // namespace vgpu::client
