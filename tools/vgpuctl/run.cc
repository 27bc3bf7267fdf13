// vgpuctl run: runs a program with our libraries in it, and changes nothing else.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "tools/common/installation.h"
#include "tools/common/node-client.h"
#include "tools/common/private-daemon.h"
#include "tools/common/reason.h"
#include "tools/common/spawn.h"
#include "tools/vgpuctl/await-program.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/program-check.h"
#include "tools/vgpuctl/relay-process.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {
namespace {

std::string prepended(const std::string& first, const char* variable) {
  const char* rest = std::getenv(variable);
  return rest == nullptr || *rest == '\0' ? first : first + ":" + rest;
}

// The libraries that replace NVIDIA's of the same name. Preloaded, so that a run path cannot take precedence, and so that opening a library
// by its path can be redirected to them (docs/libraries.md).
std::string facesIn(const std::string& folder) {
  std::string all;
  for (const char* name : {"libcublasLt.so.13", "libcublas.so.13"})
    if (std::filesystem::exists(folder + "/" + name)) all += ":" + folder + "/" + name;
  return all;
}

// Facts about the node that go into the program's environment.
struct NodeFacts {
  size_t gpus;
  bool runsPtx;
};

bool isHostOfMachine(const NodeAddress& node) { return node.remote && node.remote->transport == Transport::ivshmem; }

NodeFacts factsOf(const NodeAddress& node, const std::optional<RelayProcess>& relay) {
  if (isHostOfMachine(node)) return {relay->gpus(), relay->runsPtx()};
  const NodeClient client(node);
  return {client.devices().size(), client.runsPtx()};
}

// The environment that makes the dynamic linker load our libraries before any other CUDA library.
std::vector<std::string> programEnvironment(const NodeAddress& node, const NodeFacts& facts, const std::string& runDirectory,
                                            const RunOptions& options) {
  if (facts.gpus < options.gpus)
    fail(fmt::format("{} has {} GPUs, but the program needs {}: name another node, or --node any", node.name(), facts.gpus,
                     options.gpus));
  std::string runtime = libraryFile("libcudart.so.13"), driver = libraryFile("libcuda.so.1");
  std::string folder = std::filesystem::path(driver).parent_path();
  if (folder.find_first_of(" :") != std::string::npos) {
    fail("vgpu is installed in " + folder + ", and LD_PRELOAD takes no path with spaces or colons. Move it elsewhere");
  }
  std::vector<std::string> added = {
      "LD_PRELOAD=" + prepended(runtime + ":" + driver + facesIn(folder), "LD_PRELOAD"),
      "LD_LIBRARY_PATH=" + prepended(folder, "LD_LIBRARY_PATH"),
      "VGPU_NODE=unix:" + runDirectory + "/vgpud.sock",
      "VGPU_SESSION_NAME=" + options.name,
  };
  if (facts.runsPtx) added.emplace_back("VGPU_RUNS_PTX=1");  // read in intercept/patch/compiler.h
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view variable(*entry, std::string_view(*entry).find('=') + 1);
    bool replaced = variable == "VGPU_RUNS_PTX=" ||
                    std::any_of(added.begin(), added.end(), [&](const auto& text) { return text.starts_with(variable); });
    if (!replaced) result.emplace_back(*entry);
  }
  result.insert(result.end(), added.begin(), added.end());
  return result;
}

std::unique_ptr<PrivateDaemon> daemonFor(const NodeAddress& node) {
  if (isHostOfMachine(node)) return nullptr;  // the relay checks whether the host is there
  auto caught = kj::runCatchingExceptions([&] { NodeClient probe(node); });
  KJ_IF_MAYBE (exception, caught) {
    if (node.named) kj::throwFatalException(kj::mv(*exception));
    bool isAbsent = exception->getType() == kj::Exception::Type::DISCONNECTED;
    auto found = isAbsent ? "no vgpud runs on " + node.directory : reasonOf(*exception);
    auto daemon = std::make_unique<PrivateDaemon>();
    fmt::print(stderr, "vgpuctl: {}; this program has a private one, unix:{} {}\n", found,
               daemon->address().controlSocket(), daemon->devices());
    return daemon;
  }
  return nullptr;
}

}  // namespace

int runProgram(const NodeAddress& named, const RunOptions& options) {
  std::string executable = findExecutable(options.command.front());
  requirePreloadable(executable);
  std::unique_ptr<PrivateDaemon> own = daemonFor(named);
  std::optional<RelayProcess> relay;
  if (named.remote) relay.emplace(*named.remote);
  const std::string runDirectory = relay ? relay->runDirectory() : own ? own->address().directory : named.directory;

  SpawnRequest request;
  request.executable = executable;
  request.arguments = options.command;
  const NodeAddress& node = own ? own->address() : named;
  request.environment = programEnvironment(node, factsOf(node, relay), runDirectory, options);
  request.deathSignal = SIGKILL;
  request.ownSession = getsid(0) == 0;  // our session leader is in another pid namespace, where CRIU could not name it (docs/processes.md)
  ParentSignals signals;
  return signals.await(spawn(request), options.command.front());
}

}  // namespace vgpu::ctl
