#include <doctest/doctest.h>
#include <kj/exception.h>
#include <kj/function.h>

#include <cstdlib>
#include <fstream>

#include "../scratch-directory.h"
#include "tools/common/known-nodes.h"
#include "tools/common/node-address.h"
#include "tools/vgpuctl/node-survey.h"

namespace vgpu::ctl {
namespace {

std::string refusal(kj::FunctionParam<void()> work) {
  auto caught = kj::runCatchingExceptions([&] { work(); });
  KJ_IF_MAYBE (exception, caught) {
    return exception->getDescription().cStr();
  }
  return "";
}

struct NodesFile {
  test::ScratchDirectory folder;
  explicit NodesFile(const std::string& text) {
    std::ofstream(folder.path + "/nodes") << text;
    setenv("VGPU_NODES", (folder.path + "/nodes").c_str(), 1);
  }
  ~NodesFile() { unsetenv("VGPU_NODES"); }
};

NodeState nodeWith(const char* name, std::vector<uint64_t> free, unsigned running = 0, const char* problem = "") {
  return {{name, "unix:/x"}, problem, "a GPU", free, free, running, running};
}

std::string best(const std::vector<NodeState>& nodes, unsigned gpus = 1) {
  const NodeState* found = bestNode(nodes, gpus);
  return found == nullptr ? "none" : found->node.name;
}

}  // namespace

TEST_CASE("names from the file of nodes can be used in place of addresses") {
  NodesFile file("# mine\n\ngpu-1 tls:gpu-1.example:7000\n  near   unix:/run/a/vgpud.sock  # here\n");
  CHECK(knownNodes().size() == 2);
  CHECK(resolveNode("gpu-1").name() == "tls:gpu-1.example:7000");
  CHECK(resolveNode("near").directory == "/run/a");
  CHECK(resolveNode("./near").directory.ends_with("/near"));
  CHECK(refusal([] { resolveNode("any"); }).find("for `vgpuctl run` only") != std::string::npos);
}

TEST_CASE("an error in the file of nodes is reported with its line") {
  struct Wrong {
    const char *text, *why;
  };
  for (auto [text, why] : {Wrong{"a tcp:h:1\nb", "line 2: expected NAME ADDRESS"}, Wrong{"a tcp:h:1 more", "line 1: expected NAME ADDRESS"},
                           Wrong{"any tcp:h:1", "cannot be a node's name"}, Wrong{"tcp:h:1 tcp:h:1", "cannot be a node's name"},
                           Wrong{"a/b tcp:h:1", "cannot be a node's name"}, Wrong{"a b", "\"b\" is not an address"},
                           Wrong{"a tcp:h:1\n\na tcp:h:2", "line 3: a node named a is on an earlier line"}}) {
    CAPTURE(text);
    NodesFile file(text);
    CHECK(refusal([] { knownNodes(); }).find(why) != std::string::npos);
  }
  NodesFile none("");
  CHECK(refusal([] { surveyNodes(std::chrono::seconds(1)); }).find("no nodes are known: list them in") != std::string::npos);
}

TEST_CASE("`any` chooses the node with the most free memory on as many of its first GPUs as needed, then the fewest sessions") {
  CHECK(best({nodeWith("a", {5}), nodeWith("b", {7}), nodeWith("c", {6, 6})}) == "b");
  CHECK(best({nodeWith("a", {5}), nodeWith("b", {7}), nodeWith("c", {6, 6})}, 2) == "c");
  CHECK(best({nodeWith("a", {9, 1}), nodeWith("b", {2, 2})}, 2) == "b");
  CHECK(best({nodeWith("a", {1, 9}), nodeWith("b", {5, 5})}) == "b");
  CHECK(best({nodeWith("a", {1, 1, 9}), nodeWith("b", {3, 2, 0})}, 2) == "b");
  CHECK(best({nodeWith("a", {7}, 2), nodeWith("b", {7}, 1)}) == "b");
  CHECK(best({nodeWith("a", {7}), nodeWith("b", {7})}) == "a");
  CHECK(best({nodeWith("a", {}, 0, "nothing answers"), nodeWith("b", {1}, 9)}) == "b");
  auto ending = nodeWith("a", {7});
  ending.isEnding = true;
  CHECK(best({ending, nodeWith("b", {5})}) == "b");
  CHECK(best({nodeWith("a", {7})}, 2) == "none");
  CHECK(best({}) == "none");
}

}  // namespace vgpu::ctl
