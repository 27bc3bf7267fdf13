#include <fmt/format.h>
#include <kj/common.h>
#include <nlohmann/json.hpp>

#include <initializer_list>
#include <limits>

#include "vgpu/snapshot/manifest.h"
#include "vgpu/wire/arena.h"

namespace vgpu::snapshot {

namespace {

using Json = nlohmann::json;

constexpr size_t maxText = 64 * 1024;

// Reads untrusted JSON: if a value is missing or has another type, the manifest is refused with the field's name.
struct Fields {
  const Refusal& refusal;

  [[noreturn]] void refuse(const std::string& what) const {
    refusal(what);
    KJ_UNREACHABLE;
  }
  void require(bool holds, const char* name) const {
    if (!holds) refuse(fmt::format("field {} is missing or invalid", name));
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

// Returns the line that begins at `at`, without its newline, and advances `at` past it and the next line, which must hold the checksum of
// everything up to there.
std::string_view unseal(const Fields& fields, std::string_view text, size_t& at) {
  size_t end = text.find('\n', at), sealEnd = end == text.npos ? text.npos : text.find('\n', end + 1);
  if (sealEnd == text.npos) fields.refuse("checksum: the line that holds it is missing; the file was truncated, or is not a manifest");
  if (text.substr(end + 1, sealEnd - end) != sealOf(text.substr(0, end + 1)))
    fields.refuse("checksum: it does not match the file; the file was altered or damaged");
  std::string_view line = text.substr(at, end - at);
  at = sealEnd + 1;
  return line;
}

void readDevices(const Fields& fields, const Json& json, Header& manifest) {
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

void readState(const Fields& fields, const Json& json, Tables& tables) {
  constexpr size_t mostColumns = 16;
  fields.require(fields.in(json, "state").is_object(), "state");
  for (auto& [name, table] : json["state"].items()) {
    fields.require(table.is_array(), "state");
    Rows& rows = tables.state[name];
    for (auto& value : table) {
      fields.require(value.is_array() && value.size() <= mostColumns, "state");
      Row& row = rows.emplace_back();
      for (auto& cell : value) row.push_back(cellOf(fields, cell));
    }
  }
}

void readBlobs(const Fields& fields, const Json& json, Tables& tables) {
  for (auto& value : fields.list(json, "blobs")) {
    auto& row = fields.row(value, 2, "blobs");
    tables.blobs.push_back({fields.number(row[0], "blobs"), fields.number(row[1], "blobs")});
    fields.require(tables.blobs.back().bytes <= 4 * GiB, "blobs");
  }
}

void readRings(const Fields& fields, const Json& json, Header& manifest) {
  for (auto& value : fields.list(json, "rings")) {
    auto& row = fields.row(value, 3, "rings");
    RingState ring{fields.number(row[0], "rings"), fields.number(row[1], "rings"), fields.number(row[2], "rings")};
    bool isNext = manifest.rings.empty() || ring.device > manifest.rings.back().device;
    fields.require(isNext && ring.device < manifest.devices.size() && ring.barrier <= ring.head, "rings");
    manifest.rings.push_back(ring);
  }
}

void readMethods(const Fields& fields, const Json& json, Tables& tables) {
  for (auto& value : fields.list(json, "methods")) {
    auto& row = fields.row(value, 2, "methods");
    uint64_t number = fields.number(row[0], "methods");
    fields.require(number <= UINT16_MAX, "methods");
    tables.methods[static_cast<uint16_t>(number)] = fields.text(row[1], "methods");
  }
}

void readLibraryCalls(const Fields& fields, const Json& json, Tables& tables) {
  for (auto& value : fields.list(json, "libraryCalls")) {
    auto& row = fields.row(value, 2, "libraryCalls");
    tables.libraryCalls[fields.number(row[0], "libraryCalls")] = fields.text(row[1], "libraryCalls");
  }
}

void readIdentity(const Fields& fields, const Json& json, Header& manifest) {
  auto& identity = fields.in(json, "identity");
  manifest.identity.session = fields.textIn(identity, "session");
  manifest.identity.name = fields.textIn(identity, "name");
  manifest.identity.program = fields.textIn(identity, "program");
  manifest.identity.reattach = fields.textIn(identity, "reattach");
  uint64_t pid = fields.numberIn(identity, "pid");
  fields.require(pid <= static_cast<uint64_t>(std::numeric_limits<int>::max()), "pid");
  manifest.identity.pid = static_cast<int>(pid);
  uint64_t owner = fields.numberIn(identity, "owner");
  fields.require(owner <= std::numeric_limits<unsigned>::max(), "owner");
  manifest.identity.owner = static_cast<unsigned>(owner);
  for (auto& session : fields.list(identity, "sharesWith"))
    manifest.identity.sharesWith.push_back(fields.text(session, "sharesWith"));
}

void readFiles(const Fields& fields, const Json& json, Header& manifest) {
  auto& files = fields.in(json, "files");
  for (const char* name : dataFiles) {
    auto& file = fields.in(files, name);
    manifest.files[name] = {fields.numberIn(file, "bytes"), fields.textIn(file, "xxh3")};
  }
}

void readPacks(const Fields& fields, const Json& json, Header& manifest) {
  for (auto& bytes : fields.list(json, "packs")) manifest.packs.push_back(fields.number(bytes, "packs"));
  fields.require(manifest.packs.size() <= mostPacks, "packs");
  auto key = DigestKey::parse(fields.textIn(json, "digestKey"));
  fields.require(key.has_value(), "digestKey");
  manifest.digestKey = *key;
  manifest.pool = fields.textIn(json, "pool");
}

void readProcess(const Fields& fields, const Json& json, Header& manifest) {
  auto& process = fields.in(json, "process");
  if (process.is_object() && process.empty()) return;
  manifest.process = {{fields.numberIn(process, "bytes"), fields.textIn(process, "xxh3")},
                      fields.numberIn(process, "imageBytes")};
}

// For formats and versions that we can read.
Header parseHeader(const Fields& fields, std::string_view line) {
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != "vgpu-snapshot") fields.refuse("it does not describe a snapshot");
  Header header;
  header.version = fields.numberIn(json, "version");
  if (header.version != snapshotVersion)
    fields.refuse(
        fmt::format("format version {}, and this build ({}) reads version {}; resume it with the version that "
                    "wrote it",
                    header.version, VGPU_VERSION, snapshotVersion));
  header.software = fields.textIn(json, "software");
  auto& created = fields.in(json, "created");
  fields.require(created.is_number_integer(), "created");
  header.created = created.get<int64_t>();
  readIdentity(fields, json, header);
  readDevices(fields, json, header);
  auto& arenas = fields.in(json, "arenas");
  header.arenas = {fields.numberIn(arenas, "deviceBase"), fields.numberIn(arenas, "deviceBytes"),
                   fields.numberIn(arenas, "hostBase"), fields.numberIn(arenas, "hostBytes"),
                   fields.numberIn(arenas, "mappedBase"), fields.numberIn(arenas, "mappedBytes")};
  readRings(fields, json, header);
  header.objectCount = fields.numberIn(json, "objectCount");
  header.deviceBytes = fields.numberIn(json, "deviceBytes");
  readFiles(fields, json, header);
  readPacks(fields, json, header);
  readProcess(fields, json, header);
  return header;
}

}  // namespace

Refusal refusalOf(const SnapshotReader& directory) {
  return [&directory](const std::string& check) { directory.refuse(manifestFile, check); };
}

Header readHeader(const SnapshotReader& directory) {
  Refusal refusal = refusalOf(directory);
  Fields fields{refusal};
  std::string text = directory.readManifestHead(maxHeaderBytes);
  size_t at = 0;
  return parseHeader(fields, unseal(fields, text, at));
}

std::map<std::string, FileSum> readFileSums(const SnapshotReader& directory) {
  Refusal refusal = refusalOf(directory);
  Fields fields{refusal};
  std::string text = directory.readManifestHead(maxHeaderBytes);
  size_t at = 0;
  Json json = Json::parse(unseal(fields, text, at), nullptr, false);
  std::map<std::string, FileSum> sums;
  if (!json.is_object() || !json.contains("files")) return sums;
  for (auto& [name, file] : json["files"].items()) {
    fields.require(name.find('/') == name.npos, "files");
    if (file.is_object() && file.contains("bytes") && file.contains("xxh3"))
      sums[name] = {fields.numberIn(file, "bytes"), fields.textIn(file, "xxh3")};
  }
  return sums;
}

Manifest readManifest(const SnapshotReader& directory) {
  return parseManifest(directory.readManifest(maxManifestBytes), refusalOf(directory));
}

Tables parseTables(std::string_view text, const Refusal& refusal) {
  Fields fields{refusal};
  Json json = Json::parse(text, nullptr, false);
  Tables tables;
  readBlobs(fields, json, tables);
  readState(fields, json, tables);
  readMethods(fields, json, tables);
  readLibraryCalls(fields, json, tables);
  return tables;
}

Manifest parseManifest(std::string_view text, const Refusal& refusal) {
  Fields fields{refusal};
  size_t at = 0;
  Header header = parseHeader(fields, unseal(fields, text, at));
  Tables tables = parseTables(unseal(fields, text, at), refusal);
  if (at != text.size()) fields.refuse("checksum: there is data after the line that holds it");
  return {std::move(header), std::move(tables)};
}

}  // namespace vgpu::snapshot
