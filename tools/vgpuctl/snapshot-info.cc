#include "tools/vgpuctl/snapshot-info.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/manifest.h"
#include "tools/common/printable.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"

namespace vgpu::ctl {
namespace {

using checkpoint::Manifest;
using nlohmann::json;

uint64_t memoryBytes(const Manifest& manifest) {
  uint64_t total = 0;
  for (const auto& range : manifest.memory) total += range.bytes;
  for (const auto& array : manifest.arrays) total += array.bytes;
  return total;
}

uint64_t storedBytes(const Manifest& manifest) {
  uint64_t total = 0;
  for (const auto& [name, sum] : manifest.files) total += sum.bytes;
  return total;
}

json toJson(const Manifest& manifest, const std::string& path) {
  json devices = json::array(), variables = json::array(), files = json::object();
  for (const auto& device : manifest.devices) {
    devices.push_back({{"name", device.name}, {"uuid", device.uuid}, {"memoryBytes", device.memoryBytes}});
  }
  for (const auto& variable : manifest.variables) {
    variables.push_back(
        {{"symbol", variable.symbol}, {"address", fmt::format("{:#x}", variable.address)}, {"bytes", variable.bytes}});
  }
  for (const auto& [name, sum] : manifest.files) files[name] = {{"bytes", sum.bytes}, {"checksum", sum.checksum}};
  return {{"directory", path},
          {"version", manifest.version},
          {"software", manifest.software},
          {"created", manifest.created},
          {"session", manifest.identity.session},
          {"name", manifest.identity.name},
          {"program", manifest.identity.program},
          {"pid", manifest.identity.pid},
          {"devices", devices},
          {"barrier", manifest.barrier},
          {"head", manifest.head},
          {"objects", manifest.objectCount},
          {"ranges", manifest.memory.size()},
          {"arrays", manifest.arrays.size()},
          {"deviceBytes", memoryBytes(manifest)},
          {"storedBytes", storedBytes(manifest)},
          {"variables", variables},
          {"files", files}};
}

void print(const Manifest& manifest, const std::string& path) {
  constexpr const char* row = "{:<10} {}\n";
  auto show = [&](const char* what, const std::string& value) { fmt::print(row, what, value); };
  std::time_t created = manifest.created;
  show("snapshot", fmt::format("{} (format {}, vgpu {})", path, manifest.version, printable(manifest.software)));
  show("made", fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(created)));
  show("session", fmt::format("{} ({}, pid {})", printable(manifest.identity.session),
                              printable(manifest.identity.name), manifest.identity.pid));
  show("program", printable(manifest.identity.program));
  for (const auto& device : manifest.devices) {
    show("device",
         fmt::format("{} ({}), {}", printable(device.name), printable(device.uuid), humanBytes(device.memoryBytes)));
  }
  show("objects", std::to_string(manifest.objectCount));
  show("memory", fmt::format("{} in {} ranges and {} arrays", humanBytes(memoryBytes(manifest)), manifest.memory.size(),
                             manifest.arrays.size()));
  show("variables", std::to_string(manifest.variables.size()));
  show("position", fmt::format("{}, {} not executed", manifest.barrier, humanBytes(manifest.head - manifest.barrier)));
  for (const auto& [name, sum] : manifest.files) show("file", fmt::format("{:<8} {}", name, humanBytes(sum.bytes)));
}

}  // namespace

int inspectSnapshot(const std::string& directory, bool asJson) {
  std::string path = std::filesystem::absolute(directory).lexically_normal().string();
  Manifest manifest = checkpoint::readManifest(checkpoint::SnapshotReader(path));
  if (asJson) {
    printJson(toJson(manifest, path));
  } else {
    print(manifest, path);
  }
  return 0;
}

}  // namespace vgpu::ctl
