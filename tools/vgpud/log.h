// vgpud's log: what others say of themselves is escaped in every line, and what a peer can cause again and again is
// written once in an interval.
//
// Set up once in main(); the functions are for the event loop's thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace vgpu::daemon {

// Lines go to stderr; `level` as --log-level takes it.
void startLog(const std::string& level);

// One line in `interval` for each kind of event and peer. What was left out is counted in the next one of them, or, if
// none comes, in a line of its own once another event is seen after the interval.
class LogLimit {
 public:
  using Clock = std::chrono::steady_clock;
  using Write = std::function<void(const std::string& line)>;
  static constexpr auto interval = std::chrono::seconds(10);
  static constexpr size_t mostKeys = 1024;  // of both; further peers count as one

  explicit LogLimit(Write write) : write(std::move(write)) {}

  // `kind` is a constant of the caller's, `peer` a pid, a user or 0.
  void add(const char* kind, int64_t peer, const std::string& line, Clock::time_point now = Clock::now());

 private:
  struct Entry {
    Clock::time_point start;  // of the interval
    uint64_t leftOut = 0;
    std::string last;
  };
  using Key = std::pair<std::string, int64_t>;
  static constexpr int64_t anybody = -1;
  void expire(Clock::time_point now);

  Write write;
  std::map<Key, Entry> entries;
};

// A warning, so limited.
void warnLimited(const char* kind, int64_t peer, const std::string& line);

}  // namespace vgpu::daemon
