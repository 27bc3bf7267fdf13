// vgpu-worker: started by vgpud with its end of their connection as descriptor 3, the memory for its counters as descriptor 4 and, with
// --pinned, the node's pinned memory as descriptor 5. It serves one session and ends with the connection.
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string_view>

#include "stub/worker/device-output.h"
#include "stub/worker/image-store.h"
#include "tools/common/descriptor.h"
#include "tools/common/installation.h"
#include "tools/common/reason.h"
#include "tools/common/worker-counters.h"
#include "tools/worker/worker-server.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/memory-file.h"

namespace vgpu::stub {
namespace {

constexpr int controlSocket = 3;
constexpr int countersFile = 4;
constexpr int pinnedMemory = 5;

// The library to dlopen() for --device.
std::string driverLibrary(std::string_view device) {
  constexpr std::string_view emulated = "emulated:";
  if (device == "cuda") return "libcuda.so.1";
  if (device.starts_with(emulated)) return std::string(device.substr(emulated.size()));
  fail("--device takes cuda or emulated:PATH-OF-LIBRARY, not \"" + std::string(device) + "\"");
}

struct WorkerOptions {
  std::string device, imageStore, libraries;
  uint64_t imageStoreBytes = 0, pinnedBytes = 0;
  FoldMode fold = FoldMode::AUTO;
};

// None if the daemon named none. If the folder has become unusable since, images are sent instead; no program fails.
std::optional<stub::ImageStore> openStore(const WorkerOptions& options) {
  std::string problem;
  if (options.imageStore.empty()) return std::nullopt;
  auto store = stub::ImageStore::open(options.imageStore, options.imageStoreBytes, problem);
  if (!store) spdlog::warn("module images are not cached: {}", problem);
  return store;
}

int serve(const WorkerOptions& options) {
  Mapping memory(MemoryFile::adopt(countersFile, sizeof(WorkerCounters), sizeof(WorkerCounters)));
  auto* counters = new (memory.data()) WorkerCounters{};
  auto store = openStore(options);
  MemoryFile pinned;
  if (options.pinnedBytes > 0) pinned = MemoryFile::adopt(pinnedMemory, options.pinnedBytes, options.pinnedBytes);
  int outputFile = stub::DeviceOutput::redirect();
  stub::Images images{store ? &*store : nullptr, &counters->images};
  kj::AsyncIoContext io = kj::setupAsyncIo();
  auto stream = io.lowLevelProvider->wrapUnixSocketFd(kj::AutoCloseFd(controlSocket));
  capnp::TwoPartyVatNetwork network(*stream, descriptorsPerMessage, capnp::rpc::twoparty::Side::SERVER);
  auto rpc = capnp::makeRpcServer(network, kj::heap<WorkerServer>(driverLibrary(options.device), images, outputFile, options.fold,
                                                               &counters->launches, options.libraries, kj::mv(pinned)));
  network.onDisconnect().wait(io.waitScope);
  // Nobody needs the work thread's work any more, and it may take long: the kernel and the driver clean up.
  _exit(0);
}

}  // namespace
}  // namespace vgpu::stub

int main(int argc, char** argv) {
  CLI::App app{"One session's worker. Started by vgpud, not by hand.", "vgpu-worker"};
  vgpu::stub::WorkerOptions options;
  app.set_version_flag("--version", std::string("vgpu-worker ") + vgpu::productVersion);
  app.add_option("--device", options.device, "cuda, or emulated:PATH-OF-LIBRARY")->required();
  app.add_option("--image-store", options.imageStore, "folder of the node's cache of module images");
  app.add_option("--libraries", options.libraries, "folder of NVIDIA's libraries; without it the dynamic linker looks for them");
  app.add_option("--image-store-bytes", options.imageStoreBytes, "how many bytes it holds");
  app.add_option("--pinned", options.pinnedBytes, "how many bytes of pinned memory the node has");
  app.add_option_function<std::string>(
      "--fold", [&](const std::string& name) { options.fold = vgpu::foldModeOf(name).value_or(vgpu::FoldMode::AUTO); },
      "auto, off or always: whether queued launches are combined into graphs");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  // Standard output is reserved for kernels' printf.
  spdlog::set_default_logger(spdlog::stderr_logger_mt("vgpu-worker"));
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %n %l: %v");
  return vgpu::exitCodeOf("vgpu-worker", [&] { return vgpu::stub::serve(options); });
}
