#include "tools/vgpuctl/snapshot-info.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <kj/exception.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/common/printable.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "tools/vgpuctl/stored-snapshots.h"
#include "vgpu/snapshot/process-part.h"
#include "vgpu/snapshot/snapshot-lock.h"
#include "vgpu/snapshot/write-progress.h"

namespace vgpu::ctl {
namespace {

using snapshot::Manifest;
using snapshot::storedBytes;
using nlohmann::json;

const Rows& rowsOf(const Manifest& manifest, const char* kind) {
  static const Rows none;
  auto table = manifest.state.find(kind);
  return table == manifest.state.end() ? none : table->second;
}

json processJson(const Manifest& manifest, const std::string& path) {
  if (!manifest.process) return nullptr;
  auto part = snapshot::readProcessPart(path, *manifest.process);
  json mapped = json::array();
  for (auto& file : part.mapped) mapped.push_back({{"path", file.path}, {"bytes", file.bytes}, {"identity", file.identity}});
  json processes = json::array(), sessions = json::array();
  for (auto& process : part.processes) processes.push_back({{"pid", process.pid}, {"name", process.name}});
  for (auto& one : part.sessions)
    sessions.push_back({{"session", one.session}, {"pid", one.pid}, {"directory", snapshot::sessionFolderOf(path, one.session)}});
  return {{"criu", part.criu},    {"pid", part.pid},         {"processes", processes},
          {"sessions", sessions}, {"threads", part.threads}, {"imageBytes", manifest.process->imageBytes},
          {"mapped", mapped}};
}

json toJson(const Manifest& manifest, const std::string& path) {
  json devices = json::array(), variables = json::array(), files = json::object();
  for (const auto& device : manifest.devices) {
    devices.push_back({{"name", device.name}, {"uuid", device.uuid}, {"memoryBytes", device.memoryBytes}});
  }
  for (const auto& row : rowsOf(manifest, "variables"))
    variables.push_back(
        {{"symbol", textIn(row, 1)}, {"address", fmt::format("{:#x}", numberIn(row, 2))}, {"bytes", numberIn(row, 3)}});
  for (const auto& [name, sum] : manifest.files) files[name] = {{"bytes", sum.bytes}, {"checksum", sum.checksum}};
  for (unsigned pack = 0; pack < manifest.packs.size(); ++pack)
    files[snapshot::packFile(pack)] = {{"bytes", manifest.packs[pack]}};
  nlohmann::json rings = nlohmann::json::array();
  for (auto& ring : manifest.rings)
    rings.push_back({{"device", ring.device}, {"barrier", ring.barrier}, {"head", ring.head}});
  return {{"directory", path},
          {"version", manifest.version},
          {"software", manifest.software},
          {"created", manifest.created},
          {"session", manifest.identity.session},
          {"name", manifest.identity.name},
          {"program", manifest.identity.program},
          {"pid", manifest.identity.pid},
          {"owner", manifest.identity.owner},
          {"devices", devices},
          {"rings", rings},
          {"place", placeOf(path, manifest)},
          {"writing", writingJson(path)},
          {"objects", manifest.objectCount},
          {"ranges", rowsOf(manifest, "memory").size()},
          {"arrays", rowsOf(manifest, "arrays").size()},
          {"deviceBytes", manifest.deviceBytes},
          {"storedBytes", storedBytes(manifest)},
          {"variables", variables},
          {"process", processJson(manifest, path)},
          {"files", files}};
}

void print(const Manifest& manifest, const std::string& path) {
  constexpr const char* row = "{:<10} {}\n";
  auto show = [&](const char* what, const std::string& value) { fmt::print(row, what, value); };
  show("snapshot", fmt::format("{} (format {}, vgpu {})", path, manifest.version, printable(manifest.software)));
  show("made", timeText(manifest.created));
  show("session", fmt::format("{} ({}, pid {})", printable(manifest.identity.session),
                              printable(manifest.identity.name), manifest.identity.pid));
  show("program", printable(manifest.identity.program));
  show("owner", fmt::format("user {}", manifest.identity.owner));
  for (const auto& device : manifest.devices) {
    show("device",
         fmt::format("{} ({}), {}", printable(device.name), printable(device.uuid), humanBytes(device.memoryBytes)));
  }
  if (std::string_view place = placeOf(path, manifest); place != "disk") show("place", std::string(place) + writingOf(path));
  show("objects", std::to_string(manifest.objectCount));
  show("memory", fmt::format("{} in {} ranges and {} arrays", humanBytes(manifest.deviceBytes),
                             rowsOf(manifest, "memory").size(), rowsOf(manifest, "arrays").size()));
  show("variables", std::to_string(rowsOf(manifest, "variables").size()));
  for (auto& ring : manifest.rings)
    show("ring", fmt::format("of device {}: at {}, {} not executed", ring.device, ring.barrier, humanBytes(ring.head - ring.barrier)));
  if (manifest.process) {
    auto part = snapshot::readProcessPart(path, *manifest.process);
    size_t more = part.processes.size() - 1;
    show("process", fmt::format("{} ({}){} with {} threads, {}, saved by CRIU {}", part.pid,
                                printable(part.processes.front().name), more == 0 ? "" : fmt::format(" and {} more", more),
                                part.threads.size(), humanBytes(manifest.process->imageBytes), printable(part.criu)));
    for (auto& one : part.sessions)
      show("and", fmt::format("session {} of process {}: sessions/{}", printable(one.session), one.pid, printable(one.session)));
    for (auto& file : part.mapped) show("mapped", fmt::format("{} {}", humanBytes(file.bytes), printable(file.path)));
  }
  for (const auto& [name, sum] : manifest.files) show("file", fmt::format("{:<13} {}", name, humanBytes(sum.bytes)));
}

// The sum for the snapshot and those of other sessions in it; writing some of them may not have begun.
std::optional<snapshot::WriteProgress> progressOf(const std::string& directory) {
  std::optional<snapshot::WriteProgress> all;
  for (auto& one : withSessions({directory})) {
    auto progress = snapshot::findWriteProgress(one);
    if (!progress) continue;
    if (!all) all.emplace();
    all->doneBytes += progress->doneBytes;
    all->allBytes += progress->allBytes;
    all->seconds = std::max(all->seconds, progress->seconds);
  }
  return all;
}

}  // namespace

std::string nameOf(const std::string& directory) {
  std::filesystem::path path(directory);
  bool isInside = path.parent_path().filename() == snapshot::sessionsFolder;
  return (isInside ? path.parent_path().parent_path() : path).filename();
}

std::string timeText(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm local;
  if (localtime_r(&time, &local) == nullptr) return fmt::format("{} s", seconds);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

std::optional<snapshot::Header> headerOf(const std::string& directory) {
  std::optional<snapshot::Header> header;
  kj::runCatchingExceptions([&] { header = snapshot::readHeader(snapshot::SnapshotReader(directory)); });
  return header;
}

const char* placeOf(const std::string& directory, const snapshot::Header& header) {
  if (header.pool.empty()) return "disk";
  return snapshot::isHeld(directory) ? "memory" : "lost";
}

std::string writingOf(const std::string& directory) {
  auto progress = progressOf(directory);
  if (!progress) return "";
  return fmt::format(", being written: {} of {}{}", humanBytes(progress->doneBytes), humanBytes(progress->allBytes),
                     rateOf(progress->doneBytes, progress->allBytes, progress->seconds));
}

json writingJson(const std::string& directory) {
  auto progress = progressOf(directory);
  if (!progress) return nullptr;
  return {{"doneBytes", progress->doneBytes}, {"allBytes", progress->allBytes}, {"seconds", progress->seconds}};
}

void verifyFiles(const std::string& directory) {
  snapshot::SnapshotReader reader(directory);
  auto sums = readFileSums(reader);
  uint64_t bytes = 0;
  for (auto& [name, sum] : sums) bytes += sum.bytes;
  DoneLine progress("verify the files of " + nameOf(directory), bytes);
  reader.compare(sums, [&](uint64_t done) { progress.add(done); });
}

int inspectSnapshot(const std::string& directory, bool asJson) {
  std::string path = std::filesystem::absolute(directory).lexically_normal().string();
  snapshot::SnapshotReader reader(path);
  Manifest manifest = snapshot::readManifest(reader);
  for (const auto& row : rowsOf(manifest, "variables"))
    if (!hasColumns(row, "nsnn")) reader.refuse(snapshot::manifestFile, "state variables: a row is invalid");
  if (asJson) {
    printJson(toJson(manifest, path));
  } else {
    print(manifest, path);
  }
  return 0;
}

}  // namespace vgpu::ctl
