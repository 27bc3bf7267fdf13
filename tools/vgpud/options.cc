#include "tools/vgpud/options.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "tools/common/installation.h"
#include "vgpu/wire/unix-socket.h"

namespace vgpu {
namespace {

constexpr const char* emulatedDriver = "libvgpu-emulator.so";
constexpr int mostDevices = 64;  // as VGPU_EMULATED takes them

WorkerKind emulated(std::string_view count) {
  WorkerKind kind{"emulated:" + libraryFile(emulatedDriver), "emulated", {}};
  const char* own = std::getenv("VGPU_EMULATED");
  std::string settings = own == nullptr ? "" : own;
  if (!count.empty()) {
    int devices = 0;
    auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), devices);
    if (error != std::errc{} || end != count.data() + count.size() || devices < 1 || devices > mostDevices) {
      fail("--device emulated:N takes N from 1 to 64, not \"" + std::string(count) + "\"");
    }
    settings += (settings.empty() ? "devices=" : ",devices=") + std::to_string(devices);
  }
  if (!settings.empty()) kind.environment.push_back("VGPU_EMULATED=" + settings);
  return kind;
}

WorkerKind real() { return {"cuda", "cuda", {}}; }

}  // namespace

std::vector<WorkerKind> workerKinds(const std::string& device) {
  constexpr std::string_view counted = "emulated:";
  if (device == "auto") return {real(), emulated("")};
  if (device == "cuda") return {real()};
  if (device == "emulated") return {emulated("")};
  if (device.starts_with(counted) && device.size() > counted.size()) return {emulated(device.substr(counted.size()))};
  fail("--device takes auto, cuda, emulated or emulated:N, not \"" + device + "\"");
}

}  // namespace vgpu
