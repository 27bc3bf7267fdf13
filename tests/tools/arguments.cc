#include "tools/vgpuctl/arguments.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <kj/function.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/common/node-address.h"
#include "tools/vgpud/options.h"

namespace vgpu::ctl {
namespace {

using Words = std::vector<std::string>;

struct Variable {
  const char* name;
  Variable(const char* name, const char* value) : name(name) {
    if (value == nullptr) {
      unsetenv(name);
    } else {
      setenv(name, value, 1);
    }
  }
  ~Variable() { unsetenv(name); }
};

std::string refusal(kj::FunctionParam<void()> work) {
  auto caught = kj::runCatchingExceptions([&] { work(); });
  KJ_IF_MAYBE (exception, caught) {
    return exception->getDescription().cStr();
  }
  return "";
}

}  // namespace

TEST_CASE("arguments after the program of `run` are passed to the program") {
  CHECK(markProgram({"run", "./app", "--json"}) == Words{"run", "--", "./app", "--json"});
  CHECK(markProgram({"--node", "n", "run", "--name", "x", "./app", "-v"}) ==
        Words{"--node", "n", "run", "--name", "x", "--", "./app", "-v"});
  CHECK(markProgram({"run", "--name=x", "app"}) == Words{"run", "--name=x", "--", "app"});
  CHECK(markProgram({"run", "--", "app", "run"}) == Words{"run", "--", "app", "run"});
}

TEST_CASE("arguments of other commands are unchanged") {
  for (const Words& words : {Words{}, Words{"ps", "--json"}, Words{"suspend", "run", "--to", "d"}, Words{"run"},
                             Words{"--node", "run", "ps", "x"}}) {
    CHECK(markProgram(words) == words);
  }
}

TEST_CASE("a node is named by its socket or its run directory; an option overrides the environment, which overrides the default") {
  Variable node("VGPU_NODE", "unix:/env/vgpud.sock"), runtime("XDG_RUNTIME_DIR", "/run/me");
  CHECK(resolveNode("unix:/a/b/vgpud.sock").directory == "/a/b");
  CHECK(resolveNode("/a/b/").directory == "/a/b");
  CHECK(resolveNode("").directory == "/env");
  CHECK(resolveNode("").named);
  unsetenv("VGPU_NODE");
  CHECK(resolveNode("").directory == "/run/me/vgpu");
  CHECK(!resolveNode("").named);
  CHECK(resolveNode("here").directory == std::filesystem::current_path().string() + "/here");
  CHECK(refusal([] { resolveNode("tcp:host"); }).find("give tls:HOST:PORT") != std::string::npos);
  CHECK(refusal([] { resolveNode("unix:"); }).find("does not name a node") != std::string::npos);
}

TEST_CASE("--device-map maps the program's GPU numbers to the node's") {
  using Devices = std::vector<uint32_t>;
  CHECK(parseDeviceMap("") == Devices{});
  CHECK(parseDeviceMap("0=1,1=0") == Devices{1, 0});
  CHECK(parseDeviceMap("2=0") == Devices{notMapped, notMapped, 0});
  for (const char* wrong : {"0", "=1", "0=", "0=1,", ",", "0=1,0=2", "0=x", "a=1", "0=1=2", "64=0", "0=64", "-1=0", "0= 1"}) {
    CAPTURE(wrong);
    CHECK(refusal([&] { parseDeviceMap(wrong); }).find("--device-map takes") != std::string::npos);
  }
}

TEST_CASE("--device sets the device that workers are started with") {
  CHECK(daemon::workerKinds("cuda").size() == 1);
  CHECK(daemon::workerKinds("cuda")[0].device == "cuda");
  for (const char* wrong : {"", "gpu", "emulated:", "emulated:0", "emulated:65", "emulated:-1", "emulated:2x"}) {
    CHECK(refusal([&] { daemon::workerKinds(wrong); }).find("--device") != std::string::npos);
  }
}

}  // namespace vgpu::ctl
