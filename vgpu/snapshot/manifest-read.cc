#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <initializer_list>
#include <limits>

#include "vgpu/snapshot/manifest.h"
#include "vgpu/wire/arena.h"

namespace vgpu::snapshot {

namespace {

using Json = nlohmann::json;

constexpr size_t maxText = 64 * 1024;

// Looks at untrusted JSON: every value is of the type asked for, or the manifest is refused by the field's name.
struct Fields {
  const SnapshotReader& directory;

  [[noreturn]] void refuse(const std::string& what) const { directory.refuse(manifestFile, what); }
  void require(bool holds, const char* name) const {
    if (!holds) refuse(fmt::format("field {} is missing or makes no sense", name));
  }

  const Json& in(const Json& json, const char* name) const {
    require(json.is_object() && json.contains(name), name);
    return json[name];
  }
  const Json& list(const Json& json, const char* name) const {
    require(in(json, name).is_array(), name);
    return json[name];
  }
  uint64_t number(const Json& value, const char* name) const {
    require(value.is_number_unsigned(), name);
    return value.get<uint64_t>();
  }
  double time(const Json& value, const char* name) const {
    require(value.is_number(), name);
    return value.get<double>();
  }
  std::string text(const Json& value, const char* name) const {
    require(value.is_string() && value.get_ref<const std::string&>().size() <= maxText, name);
    return value.get<std::string>();
  }
  uint64_t numberIn(const Json& json, const char* name) const { return number(in(json, name), name); }
  std::string textIn(const Json& json, const char* name) const { return text(in(json, name), name); }
  const Json& row(const Json& value, size_t columns, const char* name) const {
    require(value.is_array() && value.size() == columns, name);
    return value;
  }
};

// The JSON before the sealing line, once that is right.
std::string unseal(const Fields& fields, const std::string& text) {
  size_t seal = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  if (seal == std::string::npos) fields.refuse("checksum: the line that holds it is missing; the file was cut off");
  std::string json = text.substr(0, seal);
  if (sealManifest(json) != text)
    fields.refuse("checksum: it differs from the file's; the file was altered or damaged");
  return json;
}

void readDevices(const Fields& fields, const Json& json, Manifest& manifest) {
  for (auto& device : fields.list(json, "devices"))
    manifest.devices.push_back({fields.textIn(device, "name"), fields.textIn(device, "uuid"),
                                fields.numberIn(device, "memoryBytes"), fields.numberIn(device, "capability"),
                                fields.time(fields.in(device, "clock"), "clock")});
  fields.require(!manifest.devices.empty() && manifest.devices.size() <= maxDevices, "devices");
}

Cell cellOf(const Fields& fields, const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_float()) return value.get<double>();
  return fields.text(value, "state");
}

void readState(const Fields& fields, const Json& json, Manifest& manifest) {
  constexpr size_t mostColumns = 16;
  fields.require(fields.in(json, "state").is_object(), "state");
  for (auto& [name, table] : json["state"].items()) {
    fields.require(table.is_array(), "state");
    Rows& rows = manifest.state[name];
    for (auto& value : table) {
      fields.require(value.is_array() && value.size() <= mostColumns, "state");
      Row& row = rows.emplace_back();
      for (auto& cell : value) row.push_back(cellOf(fields, cell));
    }
  }
}

void readBlobs(const Fields& fields, const Json& json, Manifest& manifest) {
  for (auto& value : fields.list(json, "blobs")) {
    auto& row = fields.row(value, 2, "blobs");
    manifest.blobs.push_back({fields.number(row[0], "blobs"), fields.number(row[1], "blobs")});
    fields.require(manifest.blobs.back().bytes <= 4 * GiB, "blobs");
  }
}

void readIdentity(const Fields& fields, const Json& json, Manifest& manifest) {
  auto& identity = fields.in(json, "identity");
  manifest.identity.session = fields.textIn(identity, "session");
  manifest.identity.name = fields.textIn(identity, "name");
  manifest.identity.program = fields.textIn(identity, "program");
  manifest.identity.reattach = fields.textIn(identity, "reattach");
  uint64_t pid = fields.numberIn(identity, "pid");
  fields.require(pid <= static_cast<uint64_t>(std::numeric_limits<int>::max()), "pid");
  manifest.identity.pid = static_cast<int>(pid);
}

void readFiles(const Fields& fields, const Json& json, Manifest& manifest) {
  auto& files = fields.in(json, "files");
  for (const char* name : dataFiles) {
    auto& file = fields.in(files, name);
    manifest.files[name] = {fields.numberIn(file, "bytes"), fields.textIn(file, "xxh3")};
  }
}

}  // namespace

namespace {

// The manifest's text as `keep` wants it, of a format and version that we read.
Json parse(const Fields& fields, const SnapshotReader& directory, const Json::parser_callback_t& keep) {
  Json json = Json::parse(unseal(fields, directory.readManifest(maxManifestBytes)), keep, false);
  if (!json.is_object() || json.value("format", Json()) != "vgpu-snapshot") fields.refuse("it describes no snapshot");
  uint64_t version = fields.numberIn(json, "version");
  if (version != snapshotVersion)
    fields.refuse(
        fmt::format("format version {}, and this build ({}) reads version {}; resume it with the version that "
                    "wrote it",
                    version, VGPU_VERSION, snapshotVersion));
  return json;
}

}  // namespace

Identity readIdentity(const std::string& path) {
  SnapshotReader directory(path);
  Fields fields{directory};
  auto isWanted = [](int depth, Json::parse_event_t event, Json& parsed) {
    if (event != Json::parse_event_t::key || depth != 1) return true;
    return parsed == "format" || parsed == "version" || parsed == "identity";
  };
  Manifest manifest;
  readIdentity(fields, parse(fields, directory, isWanted), manifest);
  return manifest.identity;
}

Manifest readManifest(const SnapshotReader& directory) {
  Fields fields{directory};
  Json json = parse(fields, directory, nullptr);
  Manifest manifest;
  manifest.version = fields.numberIn(json, "version");
  manifest.software = fields.textIn(json, "software");
  auto& created = fields.in(json, "created");
  fields.require(created.is_number_integer(), "created");
  manifest.created = created.get<int64_t>();
  readIdentity(fields, json, manifest);
  readDevices(fields, json, manifest);
  auto& arenas = fields.in(json, "arenas");
  manifest.arenas = {fields.numberIn(arenas, "deviceBase"), fields.numberIn(arenas, "deviceBytes"),
                     fields.numberIn(arenas, "hostBase"), fields.numberIn(arenas, "hostBytes")};
  auto& ring = fields.in(json, "ring");
  manifest.barrier = fields.numberIn(ring, "barrier");
  manifest.head = fields.numberIn(ring, "head");
  manifest.objectCount = fields.numberIn(json, "objectCount");
  readBlobs(fields, json, manifest);
  readState(fields, json, manifest);
  readFiles(fields, json, manifest);
  return manifest;
}

}  // namespace vgpu::snapshot
