// vgpud's log: text from peers is escaped in every line, and events that a peer can cause repeatedly are logged once per interval.
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

// Passes one line per `interval` for each kind of event and peer. Suppressed lines are counted in the next line of that kind and peer or,
// if none comes, in a separate line at the next event after the interval.
class LogLimit {
 public:
  using Clock = std::chrono::steady_clock;
  using Write = std::function<void(const std::string& line)>;
  static constexpr auto interval = std::chrono::seconds(10);
  static constexpr size_t mostKeys = 1024;  // pairs of kind and peer; further peers count as one

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

// A warning, limited in this way.
void warnLimited(const char* kind, int64_t peer, const std::string& line);

}  // namespace vgpu::daemon
