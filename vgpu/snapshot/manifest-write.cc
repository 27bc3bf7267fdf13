#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vgpu/snapshot/manifest.h"
#include "vgpu/base/fail.h"
#include "vgpu/wire/arena.h"

namespace vgpu::snapshot {

namespace {

using Json = nlohmann::ordered_json;

Json devicesOf(const Manifest& manifest) {
  Json devices = Json::array();
  for (auto& device : manifest.devices)
    devices.push_back({{"name", device.name},
                       {"uuid", device.uuid},
                       {"memoryBytes", device.memoryBytes},
                       {"capability", device.capability},
                       {"clock", device.clock}});
  return devices;
}

// Rows, not objects: a program may have very many.
Json stateOf(const Manifest& manifest) {
  Json state = Json::object();
  for (auto& [name, rows] : manifest.state) {
    Json& table = state[name] = Json::array();
    for (auto& row : rows) {
      Json& cells = table.emplace_back(Json::array());
      for (auto& cell : row) std::visit([&](auto& value) { cells.push_back(value); }, cell);
    }
  }
  return state;
}

}  // namespace

ArenaMap arenasOfThisBuild() { return {deviceArenaBase, deviceArenaBytes, hostArenaBase, hostArenaBytes}; }

std::string sealManifest(const std::string& json) {
  std::string text = json + "\n";
  return text + fmt::format("{{\"checksum\":\"{}\"}}\n", checksumOf(std::as_bytes(std::span(text))));
}

std::string encodeManifest(const Manifest& manifest) {
  auto& identity = manifest.identity;
  Json json{{"format", "vgpu-snapshot"},
            {"version", manifest.version},
            {"software", manifest.software},
            {"created", manifest.created}};
  json["identity"] = {{"session", identity.session},
                      {"name", identity.name},
                      {"program", identity.program},
                      {"pid", identity.pid},
                      {"reattach", identity.reattach}};
  json["devices"] = devicesOf(manifest);
  json["arenas"] = {{"deviceBase", manifest.arenas.deviceBase},
                    {"deviceBytes", manifest.arenas.deviceBytes},
                    {"hostBase", manifest.arenas.hostBase},
                    {"hostBytes", manifest.arenas.hostBytes}};
  json["ring"] = {{"barrier", manifest.barrier}, {"head", manifest.head}};
  json["objectCount"] = manifest.objectCount;
  for (auto& [name, sum] : manifest.files) json["files"][name] = {{"bytes", sum.bytes}, {"xxh3", sum.checksum}};
  json["blobs"] = Json::array();
  for (auto& blob : manifest.blobs) json["blobs"].push_back({blob.blob, blob.bytes});
  json["state"] = stateOf(manifest);
  // Names come from the program and need not be text.
  std::string text = sealManifest(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (text.size() > maxManifestBytes)
    fail(fmt::format(
        "the snapshot's manifest would take {} bytes, and {} are the most: the program has too many separate "
        "allocations. Nothing of the snapshot is left, and the program goes on",
        text.size(), maxManifestBytes));
  return text;
}

}  // namespace vgpu::snapshot
