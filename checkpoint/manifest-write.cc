#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoint/manifest.h"
#include "vgpu/base/fail.h"
#include "vgpu/wire/arena.h"

namespace vgpu::checkpoint {

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
Json tablesOf(const Manifest& manifest) {
  Json tables{
      {"memory", Json::array()},    {"arrays", Json::array()},   {"blobs", Json::array()},
      {"variables", Json::array()}, {"textures", Json::array()}, {"eventTimes", Json::array()}};
  for (auto& range : manifest.memory) tables["memory"].push_back({range.device, range.address, range.bytes});
  for (auto& array : manifest.arrays) tables["arrays"].push_back({array.handle, array.bytes});
  for (auto& t : manifest.textures) tables["textures"].push_back({t.handle, t.device, t.value, t.surface ? 1 : 0});
  for (auto& blob : manifest.blobs) tables["blobs"].push_back({blob.blob, blob.bytes});
  for (auto& v : manifest.variables) tables["variables"].push_back({v.module, v.symbol, v.address, v.bytes});
  for (auto& [event, time] : manifest.eventTimes) tables["eventTimes"].push_back({event, time});
  return tables;
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
  json.update(tablesOf(manifest));
  // Names come from the program and need not be text.
  std::string text = sealManifest(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (text.size() > maxManifestBytes)
    fail(fmt::format(
        "the snapshot's manifest would take {} bytes, and {} are the most: the program has too many separate "
        "allocations. Nothing of the snapshot is left, and the program goes on",
        text.size(), maxManifestBytes));
  return text;
}

}  // namespace vgpu::checkpoint
