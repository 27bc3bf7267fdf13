#include "tools/vgpuctl/node-survey.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>

#include "tools/common/node-client.h"
#include "tools/common/reason.h"
#include "tools/common/spawn.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

json askedOf(const KnownNode& node) {
  NodeClient client(resolveNode(node.address));
  json answer{{"device", ""}, {"memory", json::array()}, {"free", json::array()}, {"sessions", 0}, {"running", 0}};
  for (auto device : client.devices()) {
    if (answer["memory"].empty()) answer["device"] = device.getName().cStr();
    answer["memory"].push_back(device.getMemoryBytes());
    answer["free"].push_back(device.getFreeBytes());
  }
  auto listed = client.wait(client.node().listRequest().send());
  unsigned running = 0;
  for (auto session : listed.getSessions()) running += session.getState() == control::State::RUNNING;
  answer["sessions"] = listed.getSessions().size();
  answer["running"] = running;
  answer["ending"] = client.isEnding();
  return answer;
}

json answerOf(const KnownNode& node) {
  json answer;
  auto caught = kj::runCatchingExceptions([&] { answer = askedOf(node); });
  KJ_IF_MAYBE (exception, caught) {
    answer = {{"problem", reasonOf(*exception)}};
  }
  return answer;
}

// A child process that writes a node's answer into a pipe.
class Question {
 public:
  explicit Question(const KnownNode& node) : node(node) {
    int ends[2];
    KJ_SYSCALL(pipe2(ends, O_CLOEXEC));
    answer = kj::AutoCloseFd(ends[0]);
    kj::AutoCloseFd theirs(ends[1]);
    KJ_SYSCALL(process = fork());
    if (process != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    answer = nullptr;
    const std::string text = answerOf(node).dump(-1, ' ', true, json::error_handler_t::replace);
    for (size_t put = 0; put < text.size();) {
      ssize_t wrote = write(theirs, text.data() + put, text.size() - put);
      if (wrote < 0 && errno != EINTR) break;
      put += static_cast<size_t>(std::max<ssize_t>(wrote, 0));
    }
    _exit(0);
  }
  ~Question() noexcept(false) {
    kill(process, SIGKILL);
    reapChild(process);
  }
  Question(const Question&) = delete;

  int fd() const { return isComplete ? -1 : answer.get(); }

  void read() {
    char piece[4096];
    ssize_t got = ::read(answer, piece, sizeof piece);
    if (got > 0) text.append(piece, static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) isComplete = true;
  }

  NodeState state(std::chrono::seconds limit) const {
    NodeState state;
    state.node = node;
    json said = json::parse(text, nullptr, false);
    if (!isComplete) {
      state.problem = fmt::format("it has not answered within {} s", limit.count());
    } else if (!said.is_object()) {
      state.problem = "the process that asked it has ended";
    } else if (said.contains("problem")) {
      state.problem = said["problem"];
    } else {
      state.device = said["device"];
      state.memoryBytes = said["memory"].get<std::vector<uint64_t>>();
      state.freeBytes = said["free"].get<std::vector<uint64_t>>();
      state.sessions = said["sessions"];
      state.running = said["running"];
      state.isEnding = said["ending"];
    }
    return state;
  }

 private:
  const KnownNode node;
  kj::AutoCloseFd answer;
  pid_t process = 0;
  std::string text;
  bool isComplete = false;
};

}  // namespace

std::vector<NodeState> surveyNodes(std::chrono::seconds limit) {
  const std::vector<KnownNode> nodes = knownNodes();
  if (nodes.empty()) fail("no nodes are known: list them in " + knownNodesFile() + ", one line NAME ADDRESS for each");
  const auto deadline = Clock::now() + limit;
  std::vector<std::unique_ptr<Question>> questions;
  for (const KnownNode& node : nodes) questions.push_back(std::make_unique<Question>(node));
  while (true) {
    std::vector<pollfd> polled;
    bool isWaiting = false;
    for (auto& question : questions) {
      polled.push_back({question->fd(), POLLIN, 0});
      isWaiting |= question->fd() >= 0;
    }
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (!isWaiting || left <= 0) break;
    if (poll(polled.data(), polled.size(), static_cast<int>(left)) < 0 && errno != EINTR) KJ_FAIL_SYSCALL("poll", errno);
    for (size_t i = 0; i < polled.size(); ++i)
      if (polled[i].revents != 0) questions[i]->read();
  }
  std::vector<NodeState> states;
  for (auto& question : questions) states.push_back(question->state(limit));
  return states;
}

std::string whyLeftOut(const NodeState& node) {
  return node.problem.empty() && node.isEnding ? "it is shutting down and takes no more sessions" : node.problem;
}

const NodeState* bestNode(const std::vector<NodeState>& nodes, unsigned gpus) {
  // A program uses the node's first GPUs: what counts is the least free memory among these.
  auto worth = [&](const NodeState& node) {
    return std::tuple(std::ranges::min(std::span(node.freeBytes).first(gpus)), -static_cast<int64_t>(node.running));
  };
  const NodeState* best = nullptr;
  for (const NodeState& node : nodes) {
    if (!whyLeftOut(node).empty() || node.freeBytes.size() < gpus) continue;
    if (best == nullptr || worth(node) > worth(*best)) best = &node;
  }
  return best;
}

}  // namespace vgpu::ctl
