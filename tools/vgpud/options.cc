#include "tools/vgpud/options.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "tools/common/installation.h"
#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

constexpr const char* emulatedDriver = "libvgpu-emulator.so";
constexpr int mostDevices = 64;  // as VGPU_EMULATED takes them

int parseCount(std::string_view text) {
  int devices = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), devices);
  if (error != std::errc{} || end != text.data() + text.size() || devices < 1 || devices > mostDevices) {
    fail("--device emulated:N takes N from 1 to 64, not \"" + std::string(text) + "\"");
  }
  return devices;
}

// `devices` 0: as many as VGPU_EMULATED says, else one.
WorkerKind emulated(int devices) {
  WorkerKind kind{"emulated:" + libraryFile(emulatedDriver), "emulated", {}};
  const char* own = std::getenv("VGPU_EMULATED");
  std::string settings = own == nullptr ? "" : own;
  if (devices > 0) settings += (settings.empty() ? "devices=" : ",devices=") + std::to_string(devices);
  if (!settings.empty()) kind.environment.push_back("VGPU_EMULATED=" + settings);
  return kind;
}

WorkerKind real() { return {"cuda", "cuda", {}}; }

}  // namespace

std::vector<WorkerKind> workerKinds(const std::string& device) {
  constexpr std::string_view counted = "emulated:";
  if (device == "auto") return {real(), emulated(0)};
  if (device == "cuda") return {real()};
  if (device == "emulated") return {emulated(0)};
  if (device.starts_with(counted)) return {emulated(parseCount(std::string_view(device).substr(counted.size())))};
  fail("--device takes auto, cuda, emulated or emulated:N, not \"" + device + "\"");
}

}  // namespace vgpu::daemon
