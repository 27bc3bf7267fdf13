#include "migrate/objects-ahead.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "checkpoint/made-ahead.h"
#include "cuda-frames.h"
#include "vgpu/api/library.h"
#include "vgpu/base/fail.h"
#include "vgpu/snapshot/library-calls.h"
#include "vgpu/snapshot/methods.h"
#include "vgpu/snapshot/records.h"

namespace vgpu::migrate {

namespace {

constexpr size_t headBytes = sizeof(DigestKey) + sizeof(uint64_t);

// What cuBLAS calls a handle takes long to make. Descriptors are made and destroyed with every call.
bool isLibraryHandle(const ObjectRecord& record) {
  auto& frame = record.recipe.front();
  if (frame.method != api::Method::libraryCreate && frame.method != api::Method::libraryCreateAgain) return false;
  auto* entry = api::findLibraryEntry(api::FrameReader<api::Cuda::LibraryCreateParams>(frame.words).getEntry());
  return entry != nullptr && api::objectTypes[entry->arguments[api::madeArgument(*entry)].objectType].busy;
}

bool isWorth(const ObjectRecord& record, const std::function<bool(uint64_t image)>& isSent) {
  if (record.id.kind == api::Kind::LIBRARY_OBJECT) return isLibraryHandle(record);
  auto& frame = record.recipe.front();
  return frame.method != api::Method::moduleLoad || isSent(api::FrameReader<api::Cuda::ModuleLoadParams>(frame.words).getBlob());
}

}  // namespace

std::vector<std::byte> encodeObjects(const ObjectsAhead& objects) {
  std::string tables = snapshot::encodeTables(objects.tables);
  uint64_t tablesBytes = tables.size();
  auto records = snapshot::encodeRecords(objects.records);
  std::vector<std::byte> message(headBytes + tables.size() + records.size());
  std::memcpy(message.data(), &objects.key, sizeof objects.key);
  std::memcpy(&message[sizeof objects.key], &tablesBytes, sizeof tablesBytes);
  std::memcpy(&message[headBytes], tables.data(), tables.size());
  std::ranges::copy(records, message.begin() + static_cast<std::ptrdiff_t>(headBytes + tables.size()));
  return message;
}

ObjectsAhead decodeObjects(std::span<const std::byte> message) {
  snapshot::Refusal refuse = [](const std::string& check) { fail("the objects that the source of the migration sent: " + check); };
  if (message.size() < headBytes) refuse("they are truncated");
  ObjectsAhead objects;
  uint64_t tablesBytes = 0;
  std::memcpy(&objects.key, message.data(), sizeof objects.key);
  std::memcpy(&tablesBytes, &message[sizeof objects.key], sizeof tablesBytes);
  message = message.subspan(headBytes);
  if (tablesBytes > message.size()) refuse("they are truncated");
  std::string tables(tablesBytes, 0);
  std::ranges::transform(message.first(tablesBytes), tables.begin(), [](std::byte byte) { return std::to_integer<char>(byte); });
  objects.tables = snapshot::parseTables(tables, refuse);
  objects.records = snapshot::decodeRecords(message.subspan(tablesBytes), UINT64_MAX);
  snapshot::requireSameMethods(objects.tables.methods, refuse);
  snapshot::requireKnownLibraryCalls(objects.tables.libraryCalls, refuse);
  return objects;
}

bool areExecuted(const std::vector<ObjectRecord>& records, const RingCut& executed) {
  return std::ranges::all_of(records, [&](const ObjectRecord& record) {
    auto isExecuted = [&](const RecordedFrame& frame) { return executed.hasExecuted(frame.place()); };
    return !record.destroyed() && std::ranges::all_of(record.recipe, isExecuted);
  });
}

std::vector<ObjectRecord> worthMakingAhead(std::vector<ObjectRecord> records, const std::function<bool(uint64_t image)>& isSent) {
  std::set<uint64_t> chosen;
  std::erase_if(records, [&](const ObjectRecord& record) {
    bool isChosen = !record.destroyed() && checkpoint::MadeAhead::isOf(record.id.kind) && isWorth(record, isSent) &&
                    std::ranges::all_of(record.needs, [&](const Need& need) { return chosen.contains(need.record); });
    if (isChosen) chosen.insert(record.key());
    return !isChosen;
  });
  return records;
}

}  // namespace vgpu::migrate
