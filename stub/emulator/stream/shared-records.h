// The records of an event that several processes share, in a page of memory that all of them map.
//
// Records are numbered in the order of their creation. When a record is done, its number is stored in the word that belongs to it. A wait
// or a query refers to the latest number. There are `words` words, so a new record waits until the earlier record with the same word is
// done, which delays nobody while fewer records are pending.
//
// Any thread of any of the processes, without locks. The page is a memfd: a process opens it through the process id and the descriptor in
// the event's handle, and compares the random number that only the page and the handle contain.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "stub/emulator/driver/cuda-api.h"
#include "stub/emulator/memory/address-space.h"

namespace vgpu::emulator::api {

class SharedRecords {
 public:
  // Creates a page. Refuses with CUDA_ERROR_OPERATING_SYSTEM.
  static std::shared_ptr<SharedRecords> make();
  // Opens the page of a handle; refuses with CUDA_ERROR_INVALID_HANDLE if its event is gone, and with CUDA_ERROR_INVALID_CONTEXT if the
  // event belongs to this process.
  static std::shared_ptr<SharedRecords> open(const CUipcEventHandle& handle);
  SharedRecords(int fd, std::shared_ptr<HostView> view) : fd(fd), view(std::move(view)) {}
  ~SharedRecords();
  SharedRecords(const SharedRecords&) = delete;

  CUipcEventHandle handle() const;

  // Returns the number of a new record, for finish().
  uint64_t begin();
  void finish(uint64_t record);
  uint64_t latest() const { return page().begun.load(std::memory_order_acquire); }
  // Record 0, which is before all records, is done.
  bool isDone(uint64_t record) const {
    return record == 0 || page().done[record % words].load(std::memory_order_acquire) >= record;
  }

 private:
  static constexpr uint64_t words = 256;
  struct Page {
    std::atomic<uint64_t> first, second;  // the event's random number, written before any other process has the page
    std::atomic<uint64_t> begun;
    std::array<std::atomic<uint64_t>, words> done;
  };
  Page& page() const;

  const int fd;
  const std::shared_ptr<HostView> view;
};

}  // namespace vgpu::emulator::api
