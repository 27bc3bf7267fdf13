#include "tools/vgpud/options.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "tools/common/installation.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"

namespace vgpu::daemon {
namespace {

constexpr const char* emulatedDriver = "libvgpu-emulator.so";
constexpr int mostDevices = 64;  // limit of VGPU_EMULATED

struct Unit {
  std::string_view name;
  uint64_t bytes;
};
constexpr Unit units[] = {{"M", MiB}, {"MiB", MiB}, {"G", GiB}, {"GiB", GiB}};

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

GuestOption parseGuest(const std::string& text) {
  const size_t equals = text.find('='), comma = text.rfind(',');
  GuestOption guest;
  if (equals != std::string::npos) guest = {text.substr(0, equals), text.substr(equals + 1), 0};
  uint64_t unit = 0;
  if (comma != std::string::npos && comma > equals) {
    guest.file = text.substr(equals + 1, comma - equals - 1);
    const char* end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data() + comma + 1, end, guest.bytes);
    const std::string_view suffix(rest, end);
    for (const Unit& known : units)
      if (suffix == known.name) unit = known.bytes;
    if (error != std::errc{} || guest.bytes > TiB / MiB) unit = 0;
    guest.bytes *= unit;
    if (guest.bytes == 0) guest.name.clear();
  }
  if (guest.name.empty() || guest.name.find('/') != std::string::npos || guest.file.empty())
    fail("--guest takes NAME=FILE or NAME=FILE,SIZE, as vm1=/dev/shm/vm1,2GiB, not \"" + text + "\"");
  return guest;
}

std::vector<WorkerKind> workerKinds(const std::string& device) {
  constexpr std::string_view counted = "emulated:";
  if (device == "auto") return {real(), emulated(0)};
  if (device == "cuda") return {real()};
  if (device == "emulated") return {emulated(0)};
  if (device.starts_with(counted)) return {emulated(parseCount(std::string_view(device).substr(counted.size())))};
  fail("--device takes auto, cuda, emulated or emulated:N, not \"" + device + "\"");
}

}  // namespace vgpu::daemon
