// The times between events that the program has been given, so that it gets the same values again: after a restore the worker
// knows when an earlier event happened, but cannot repeat to the last bit the difference that the driver computed.
//
// Any thread; the mutex is a leaf. Stays in the program's process over a suspend. For each end the latest few starts are kept;
// the worker is asked for others.
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
    std::deque<Known> known;  // the oldest first
  };

  mutable std::mutex mutex;
  std::unordered_map<uint64_t, End> ends;
  std::atomic<bool> isUsed{false};  // most programs measure no times
};

}  // namespace vgpu::client
