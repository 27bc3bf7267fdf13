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

// Arrays instead of JSON objects, because a program may have very many.
Json stateOf(const Tables& tables) {
  Json state = Json::object();
  for (auto& [name, rows] : tables.state) {
    Json& table = state[name] = Json::array();
    for (auto& row : rows) {
      Json& cells = table.emplace_back(Json::array());
      for (auto& cell : row) std::visit([&](auto& value) { cells.push_back(value); }, cell);
    }
  }
  return state;
}

// Names come from the program and may be invalid UTF-8.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

ArenaMap arenasOfThisBuild() { return {deviceArenaBase, deviceArenaBytes, hostArenaBase, hostArenaBytes, mappedArenaBase, mappedArenaBytes}; }

std::string sealOf(std::string_view text) {
  return fmt::format("{{\"checksum\":\"{}\"}}\n", checksumOf(std::as_bytes(std::span(text))));
}

std::string sealManifest(const std::string& header, const std::string& tables) {
  std::string text = header + "\n";
  text += sealOf(text);
  text += tables + "\n";
  return text + sealOf(text);
}

RingCut barrierOf(const Header& header) {
  RingCut cut;
  for (auto& ring : header.rings) cut[static_cast<unsigned>(ring.device)] = ring.barrier;
  return cut;
}

uint64_t storedBytes(const Header& header) {
  uint64_t bytes = 0;
  for (auto& [name, sum] : header.files) bytes += sum.bytes;
  for (uint64_t pack : header.packs) bytes += pack;
  if (header.process) bytes += header.process->list.bytes + header.process->imageBytes;
  return bytes;
}

std::string encodeTables(const Tables& tables) {
  Json json;
  json["blobs"] = Json::array();
  for (auto& blob : tables.blobs) json["blobs"].push_back({blob.blob, blob.bytes});
  json["state"] = stateOf(tables);
  json["methods"] = Json::array();
  for (auto& [number, signature] : tables.methods) json["methods"].push_back({number, signature});
  json["libraryCalls"] = Json::array();
  for (auto& [signature, symbol] : tables.libraryCalls) json["libraryCalls"].push_back({signature, symbol});
  return dump(json);
}

std::string encodeManifest(const Manifest& manifest) {
  auto& identity = manifest.identity;
  Json json{{"format", "vgpu-snapshot"},
            {"version", manifest.version},
            {"software", manifest.software},
            {"created", manifest.created}};
  json["identity"] = {
      {"session", identity.session}, {"name", identity.name},         {"program", identity.program},      {"pid", identity.pid},
      {"owner", identity.owner},     {"reattach", identity.reattach}, {"sharesWith", identity.sharesWith}};
  json["devices"] = devicesOf(manifest);
  json["arenas"] = {{"deviceBase", manifest.arenas.deviceBase},
                    {"deviceBytes", manifest.arenas.deviceBytes},
                    {"hostBase", manifest.arenas.hostBase},
                    {"hostBytes", manifest.arenas.hostBytes},
                    {"mappedBase", manifest.arenas.mappedBase},
                    {"mappedBytes", manifest.arenas.mappedBytes}};
  json["rings"] = Json::array();
  for (auto& ring : manifest.rings) json["rings"].push_back({ring.device, ring.barrier, ring.head});
  json["objectCount"] = manifest.objectCount;
  json["deviceBytes"] = manifest.deviceBytes;
  for (auto& [name, sum] : manifest.files) json["files"][name] = {{"bytes", sum.bytes}, {"xxh3", sum.checksum}};
  json["packs"] = manifest.packs;
  json["digestKey"] = manifest.digestKey.hex();
  json["pool"] = manifest.pool;
  json["process"] = Json::object();
  if (auto& process = manifest.process)
    json["process"] = {{"bytes", process->list.bytes}, {"xxh3", process->list.checksum}, {"imageBytes", process->imageBytes}};
  std::string header = dump(json), text = sealManifest(header, encodeTables(manifest));
  if (header.size() > maxHeaderBytes - 128)
    fail("the snapshot's header would be too long: the program has a name of more than 10,000 bytes. Nothing of the snapshot is "
         "left, and the program goes on");
  if (text.size() > maxManifestBytes)
    fail(fmt::format(
        "the snapshot's manifest would take {} bytes, more than the limit of {}: the program has too many separate allocations. Nothing of "
        "the snapshot is left, and the program goes on",
        text.size(), maxManifestBytes));
  return text;
}

}  // namespace vgpu::snapshot
