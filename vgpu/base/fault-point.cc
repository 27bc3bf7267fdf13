#include "vgpu/base/fault-point.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace vgpu {
namespace {

enum class Action { hit, stop, kill };
constexpr std::string_view actionNames[] = {"hit", "stop", "kill"};

// The fault point that the environment asks for. Read once, at process start.
struct Plan {
  std::optional<size_t> point;  // index into faultPoints
  Action action = Action::kill;
  long count = 1;
  std::string log;
  std::atomic<long> seen{0};  // how often `point` has been reached

  Plan();
  bool read(std::string_view text);
};

// Splits off the part of `text` before the next colon; `text` keeps what follows the colon.
std::string_view takePart(std::string_view& text) {
  std::string_view part = text.substr(0, text.find(':'));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

bool Plan::read(std::string_view text) {
  std::string_view name = takePart(text), wanted = takePart(text);
  for (size_t i = 0; i < std::size(faultPoints); ++i)
    if (faultPoints[i].name == name) point = i;
  bool isKnown = wanted.empty();
  for (size_t i = 0; i < std::size(actionNames); ++i) {
    if (actionNames[i] != wanted) continue;
    action = static_cast<Action>(i);
    isKnown = true;
  }
  if (!text.empty()) count = std::strtol(std::string(text).c_str(), nullptr, 10);
  return point && isKnown && count > 0;
}

Plan::Plan() {
  const char *wish = std::getenv("VGPU_FAULT_POINT"), *file = std::getenv("VGPU_FAULT_LOG");
  if (file != nullptr) log = file;
  if (wish != nullptr && !read(wish)) {
    std::fprintf(stderr, "vgpu: VGPU_FAULT_POINT=%s is not a fault point; vgpud --list-fault-points lists them\n", wish);
    point.reset();
  }
  faultPointsOn = point || !log.empty();
}

// One write call, so that lines of several processes do not mix.
void append(const std::string& log, const std::string& line) {
  int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  [[maybe_unused]] ssize_t written = write(fd, line.data(), line.size());
  close(fd);
}

}  // namespace

constinit std::atomic<bool> faultPointsOn{false};
namespace {
Plan plan;
}

void hitFaultPoint(FaultPointName name) {
  bool acts = plan.point == name.index && plan.seen.fetch_add(1) + 1 == plan.count;
  Action action = acts ? plan.action : Action::hit;
  if (!plan.log.empty()) {
    auto& point = faultPoints[name.index];
    append(plan.log, fmt::format("{} {} {} {}\n", point.name, point.process, getpid(),
                                 actionNames[static_cast<size_t>(action)]));
  }
  if (action == Action::kill) kill(getpid(), SIGKILL);
  // raise() signals this thread: a signal to the process could stop another thread first, while this one goes on and takes a lock of the
  // store.
  if (action == Action::stop) raise(SIGSTOP);
}

}  // namespace vgpu
