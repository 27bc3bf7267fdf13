// The records of an event that several processes share, in a page of memory that all of them have mapped.
//
// Records are numbered in the order in which they are made, and the word of a record's number has that number once the record is
// done. A wait or a query is about the latest number. There are `words` words, so a record waits for the one that had its word
// before; with fewer than that outstanding nobody ever does.
//
// Any thread of any of the processes, without locks. The page is a memfd: a process that has the event's handle opens it by the
// process and the descriptor that the handle names, and finds in it the number that only the two know.
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
  // A new page. Refuses with CUDA_ERROR_OPERATING_SYSTEM.
  static std::shared_ptr<SharedRecords> make();
  // That of a handle; refuses with CUDA_ERROR_INVALID_HANDLE if its event is gone, and with CUDA_ERROR_INVALID_CONTEXT if it is
  // one of this process.
  static std::shared_ptr<SharedRecords> open(const CUipcEventHandle& handle);
  SharedRecords(int fd, std::shared_ptr<HostView> view) : fd(fd), view(std::move(view)) {}
  ~SharedRecords();
  SharedRecords(const SharedRecords&) = delete;

  CUipcEventHandle handle() const;

  // The number of a new record, for finish().
  uint64_t begin();
  void finish(uint64_t record);
  uint64_t latest() const { return page().begun.load(std::memory_order_acquire); }
  // 0, before any record, is done.
  bool isDone(uint64_t record) const {
    return record == 0 || page().done[record % words].load(std::memory_order_acquire) >= record;
  }

 private:
  static constexpr uint64_t words = 256;
  struct Page {
    std::atomic<uint64_t> first, second;  // the event's random number, written before anybody else has the page
    std::atomic<uint64_t> begun;
    std::array<std::atomic<uint64_t>, words> done;
  };
  Page& page() const;

  const int fd;
  const std::shared_ptr<HostView> view;
};

}  // namespace vgpu::emulator::api
