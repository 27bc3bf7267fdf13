// vgpu-worker: started by vgpud, with its end of their connection as descriptor 3. It serves one session and ends with
// the connection.
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <string_view>

#include "tools/common/installation.h"
#include "tools/common/reason.h"
#include "tools/worker/worker-server.h"
#include "vgpu/wire/unix-socket.h"

namespace vgpu {
namespace {

constexpr int controlSocket = 3;
constexpr uint descriptorsPerMessage = 3;

// What dlopen() is to load for --device.
std::string driverLibrary(std::string_view device) {
  constexpr std::string_view emulated = "emulated:";
  if (device == "cuda") return "libcuda.so.1";
  if (device.starts_with(emulated)) return std::string(device.substr(emulated.size()));
  fail("--device takes cuda or emulated:PATH-OF-LIBRARY, not \"" + std::string(device) + "\"");
}

int serve(const std::string& device) {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  auto stream = io.lowLevelProvider->wrapUnixSocketFd(kj::AutoCloseFd(controlSocket));
  capnp::TwoPartyVatNetwork network(*stream, descriptorsPerMessage, capnp::rpc::twoparty::Side::SERVER);
  auto rpc = capnp::makeRpcServer(network, kj::heap<WorkerServer>(driverLibrary(device)));
  network.onDisconnect().wait(io.waitScope);
  // Whatever the work thread does now is for nobody, and may take long: the kernel and the driver clean up.
  _exit(0);
}

}  // namespace
}  // namespace vgpu

int main(int argc, char** argv) {
  CLI::App app{"One session's worker. Started by vgpud, not by hand.", "vgpu-worker"};
  std::string device;
  app.set_version_flag("--version", std::string("vgpu-worker ") + vgpu::productVersion);
  app.add_option("--device", device, "cuda, or emulated:PATH-OF-LIBRARY")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return vgpu::exitCodeOf("vgpu-worker", [&] { return vgpu::serve(device); });
}
