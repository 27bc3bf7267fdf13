// The elapsed times between events that the program has been given, so that a repeated query gets the same value: after a restore the
// worker knows when an earlier event happened, but cannot reproduce the driver's difference to the last bit.
//
// Any thread; the mutex is a leaf lock. Stays in the program's process over a suspend. For each end event only the latest few starts are
// kept; others are requested from the worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace vgpu::client {

class ElapsedTimes {
 public:
  // One record of an event: its handle and the sequence number of the frame that recorded it.
  struct Record {
    uint64_t event, sequence;
    bool operator==(const Record&) const = default;
  };

  std::optional<float> find(const Record& start, const Record& end) const;
  void add(const Record& start, const Record& end, float milliseconds);
  // `end` is destroyed.
  void forget(uint64_t end);

 private:
  static constexpr size_t mostStarts = 16;
  struct Known {
    Record start;
    float milliseconds;
  };
  struct End {
    uint64_t sequence = 0;
    std::deque<Known> known;  // oldest first
  };

  mutable std::mutex mutex;
  std::unordered_map<uint64_t, End> ends;
  std::atomic<bool> isUsed{false};  // false in most programs, which measure no times
};

}  // namespace vgpu::client
