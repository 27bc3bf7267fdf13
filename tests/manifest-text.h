// A manifest as tests change it: header and tables as one JSON object.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "vgpu/snapshot/manifest.h"

namespace vgpu::test {

inline nlohmann::json manifestOf(const std::string& text) {
  size_t header = text.find('\n'), tables = text.find('\n', header + 1) + 1;
  auto json = nlohmann::json::parse(text.substr(0, header));
  json.update(nlohmann::json::parse(text.substr(tables, text.find('\n', tables) - tables)));
  return json;
}

// The text of the manifest, sealed as SnapshotWriter does.
inline std::string sealed(const nlohmann::json& json) {
  nlohmann::json header = json, tables = nlohmann::json::object();
  for (const char* name : {"blobs", "state", "methods", "libraryCalls"})
    if (json.contains(name)) {
      tables[name] = json[name];
      header.erase(name);
    }
  return snapshot::sealManifest(header.dump(), tables.dump());
}

}  // namespace vgpu::test
