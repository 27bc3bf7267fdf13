#include "tools/vgpud/log.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace vgpu::daemon {
namespace {

struct Log {
  std::vector<std::string> lines;
  LogLimit limit{[this](const std::string& line) { lines.push_back(line); }};
  LogLimit::Clock::time_point now{};

  void add(const char* kind, int64_t peer, const std::string& line) { limit.add(kind, peer, line, now); }
};

}  // namespace

TEST_CASE("a peer that causes the same line repeatedly gets one line per interval, with a count of the others") {
  Log log;
  for (int i = 0; i < 1000; ++i) log.add("renewal", 7, "session a needs a worker");
  CHECK(log.lines == std::vector<std::string>{"session a needs a worker"});
  log.now += LogLimit::interval;
  log.add("renewal", 7, "session a needs one still");
  REQUIRE(log.lines.size() == 3);
  CHECK(log.lines[1] == "999 more like: session a needs a worker");
  CHECK(log.lines[2] == "session a needs one still");
}

TEST_CASE("another peer, or another kind of event, has its own line") {
  Log log;
  log.add("renewal", 7, "a");
  log.add("renewal", 8, "b");
  log.add("admission", 7, "c");
  CHECK(log.lines == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("the number of omitted lines is logged when another peer's line comes after the interval") {
  Log log;
  log.add("renewal", 7, "a");
  log.add("renewal", 7, "a again");
  log.now += LogLimit::interval;
  log.add("renewal", 8, "b");
  CHECK(log.lines == std::vector<std::string>{"a", "1 more like: a again", "b"});
}

TEST_CASE("any number of peers causes a bounded number of lines") {
  Log log;
  for (int peer = 0; peer < 100000; ++peer) log.add("admission", peer, "refused");
  CHECK(log.lines.size() <= LogLimit::mostKeys + 1);
}

}  // namespace vgpu::daemon
