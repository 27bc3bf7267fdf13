// vgpuctl inspect: copies a session's object list while the program writes it, and reads the copy in a confined process.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/common/printable.h"
#include "tools/common/session-lookup.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/confined.h"
#include "tools/common/node-client.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "tools/vgpuctl/snapshot-info.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

struct Totals {
  std::map<std::string, size_t> byKind;  // live objects
  uint64_t memoryBytes = 0;
  size_t kept = 0;  // destroyed objects that are kept because others need them
};

std::string hex(uint64_t value) { return fmt::format("{:#x}", value); }

std::string parentOf(const ObjectRecord& record) {
  if (!record.parented || record.needs.empty()) return "-";
  const ObjectId& parent = record.needs.front();
  return fmt::format("{} {:#x}", kindName(parent.kind), parent.handle);
}

uint64_t madeAt(const ObjectRecord& record) { return record.recipe.empty() ? 0 : record.recipe.front().position; }

void count(Totals& totals, const ObjectRecord& record) {
  if (record.destroyed()) {
    ++totals.kept;
    return;
  }
  ++totals.byKind[kindName(record.id.kind)];
  if (record.id.kind == api::Kind::MEMORY) totals.memoryBytes += record.bytes;
}

json toJson(const ObjectRecord& record) {
  json needs = json::array();
  for (const ObjectId& need : record.needs)
    needs.push_back({{"kind", kindName(need.kind)}, {"handle", hex(need.handle)}});
  return {{"kind", kindName(record.id.kind)},
          {"handle", hex(record.id.handle)},
          {"device", record.device},
          {"address", hex(record.address)},
          {"bytes", record.bytes},
          {"destroyed", record.destroyed()},
          {"needs", needs},
          {"parented", record.parented},
          {"position", madeAt(record)},
          {"frames", record.recipe.size()}};
}

json toJson(const Totals& totals) {
  return {{"byKind", totals.byKind}, {"memoryBytes", totals.memoryBytes}, {"keptForOthers", totals.kept}};
}

void printObjects(const std::vector<ObjectRecord>& records, const Totals& totals) {
  constexpr const char* row = "{:<11} {:<18} {:>6} {:<30} {:>12} {:>12}\n";
  fmt::print(row, "KIND", "HANDLE", "DEVICE", "PARENT", "SIZE", "MADE AT");
  for (const ObjectRecord& record : records) {
    fmt::print(row, kindName(record.id.kind), hex(record.id.handle), record.device, parentOf(record),
               record.bytes == 0 ? "-" : humanBytes(record.bytes),
               std::to_string(madeAt(record)) + (record.destroyed() ? " (gone)" : ""));
  }
  std::string kinds;
  for (const auto& [kind, number] : totals.byKind)
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", number, kind);
  fmt::print("{}; {} of device memory", kinds.empty() ? "no objects" : kinds, humanBytes(totals.memoryBytes));
  if (totals.kept > 0) fmt::print("; {} destroyed objects are kept because others need their recipes", totals.kept);
  fmt::print("\n");
}

int showObjects(control::SessionInfo::Reader session, bool asJson) {
  std::vector<ObjectRecord> records;
  Totals totals;
  readObjectsCopied(session.getDirectory().cStr(), [&](ObjectRecord&& record) {
    count(totals, record);
    records.push_back(std::move(record));
  });
  if (asJson) {
    json result = sessionJson(session);
    result["objects"] = json::array();
    for (const ObjectRecord& record : records) result["objects"].push_back(toJson(record));
    result["totals"] = toJson(totals);
    printJson(result);
    return 0;
  }
  fmt::print("session {} ({}, pid {}), {}\n", session.getId().cStr(), printable(session.getName().cStr()),
             session.getPid(), stateName(session.getState()));
  printObjects(records, totals);
  return 0;
}

int inspectSession(const NodeAddress& address, const std::string& wanted, bool asJson) {
  NodeClient client(address);
  auto answer = client.wait(client.node().listRequest().send());
  std::vector<SessionKey> keys;
  for (auto session : answer.getSessions()) {
    keys.push_back({session.getId().cStr(), session.getName().cStr(), session.getPid()});
  }
  auto session = answer.getSessions()[lookUpSession(keys, wanted)];
  return runConfined(fmt::format("the object list of session {}", session.getId().cStr()),
                     [&] { return showObjects(session, asJson); });
}

}  // namespace

int inspect(const NodeAddress& address, const std::string& target, bool asJson) {
  std::error_code error;
  bool isPath = target.find('/') != std::string::npos || std::filesystem::is_directory(target, error);
  if (!isPath) return inspectSession(address, target, asJson);
  return runConfined("the snapshot", [&] { return inspectSnapshot(target, asJson); });
}

}  // namespace vgpu::ctl
