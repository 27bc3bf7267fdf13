#include "vgpu/objects/record-table.h"

#include <kj/debug.h>

#include <algorithm>
#include <utility>

#include "vgpu/objects/record-format.h"

namespace vgpu {

using api::Effect;

namespace {

// Inserts by number: threads hand their frames over slightly out of order.
void append(std::vector<RecordedFrame>& recipe, const RecordedFrame& frame) {
  auto place = std::upper_bound(recipe.begin(), recipe.end(), frame.number,
                                [](uint64_t number, const RecordedFrame& f) { return number < f.number; });
  recipe.insert(place, frame.clone());
}

}  // namespace

RecordTable::Named RecordTable::resolve(unsigned device, kj::ArrayPtr<const api::EffectOn> effects) const {
  Named named;
  for (auto& effect : effects) {
    if (effect.nullable && effect.handle == 0) {
      if (effect.kind != api::Kind::STREAM) continue;
      // What was set for a device's default stream is part of its context's record.
      if (auto context = live.find({api::Kind::CONTEXT, device}); context != live.end())
        named.all.push_back({context->first, context->second});
      continue;
    }
    if (effect.effect == Effect::creates) {
      KJ_REQUIRE(named.created == nullptr, "a frame creates two objects; the object list allows one");
      named.created = &effect;
      continue;
    }
    auto found = live.find({effect.kind, effect.handle});
    if (found == live.end()) {
      named.known = false;
      return named;
    }
    Need need{{effect.kind, effect.handle}, found->second};
    if (effect.effect == Effect::changes) named.changed.push_back(need.record);
    if (effect.effect == Effect::destroys) named.destroyed.push_back(need.record);
    if (std::find(named.all.begin(), named.all.end(), need) != named.all.end()) continue;
    named.all.insert(effect.parent ? named.all.begin() : named.all.end(), need);
    named.parented |= effect.parent;
  }
  return named;
}

void RecordTable::apply(RecordedFrame frame, kj::ArrayPtr<const api::EffectOn> effects) {
  Named named = resolve(frame.device, effects);
  if (!named.known) return;
  if (named.created != nullptr) {
    create(*named.created, frame, named);
    named.all.push_back({{named.created->kind, named.created->handle}, frame.number});
  }
  for (uint64_t key : named.changed) change(key, frame, named);
  for (uint64_t key : named.destroyed) destroy(key, frame, named);
  if (named.created == nullptr && named.changed.empty() && named.destroyed.empty()) changeContext(frame, named);
}

void RecordTable::create(const api::EffectOn& effect, const RecordedFrame& frame, const Named& named) {
  ObjectId id{effect.kind, effect.handle};
  auto exists = live.find(id);
  KJ_REQUIRE(exists == live.end(), "a frame creates an object that already exists", kindName(id.kind), id.handle, frame.number,
             exists->second);
  KJ_REQUIRE(!records.contains(frame.number), "two frames have the same number", frame.number);
  ObjectRecord& record = records[frame.number];
  record.id = id;
  record.device = frame.device;
  record.address = frame.address;
  record.bytes = frame.bytes;
  record.parented = named.parented;
  record.recipe.push_back(frame.clone());
  need(record, named.all);
  live[id] = frame.number;
  written.insert(frame.number);
}

void RecordTable::change(uint64_t key, const RecordedFrame& frame, const Named& named) {
  ObjectRecord& record = records.at(key);
  std::set<uint64_t> superseded;  // objects that the superseded frames named
  if (isSetting(frame.method)) {
    // Frames arrive here as their calls return: of two threads' frames, the one executed first may arrive second.
    auto isLater = [&](const RecordedFrame& other) { return other.number > frame.number && supersedes(other, frame); };
    if (std::ranges::any_of(record.recipe, isLater) && !usedSince(key, frame.number)) return;
    std::erase_if(record.recipe, [&](const RecordedFrame& earlier) {
      if (earlier.number >= frame.number || !supersedes(frame, earlier) || usedSince(key, earlier.number)) return false;
      for (auto& effect : effectsOf(earlier.method, earlier.words))
        for (auto& need : record.needs)
          if (need == ObjectId{effect.kind, effect.handle}) superseded.insert(need.record);
      return true;
    });
  }
  append(record.recipe, frame);
  need(record, named.all);
  forget(record, key, std::move(superseded));
  written.insert(key);
  if (record.key() != key) rename(key, record.key());
}

// Removes those of `candidates` from the record's needs that no frame of its recipe names any more, such as the array to which a texture
// reference was bound before. If a handle belonged to several of them, one after the other, all of these stay.
void RecordTable::forget(ObjectRecord& record, uint64_t key, std::set<uint64_t> candidates) {
  if (candidates.empty()) return;
  std::set<ObjectId> named;
  for (auto& frame : record.recipe)
    for (auto& effect : effectsOf(frame.method, frame.words)) named.insert({effect.kind, effect.handle});
  std::erase_if(candidates, [&](uint64_t candidate) { return named.contains(records.at(candidate).id); });
  std::erase_if(record.needs, [&](const Need& need) { return candidates.contains(need.record); });
  for (uint64_t candidate : candidates) {
    auto found = users.find(candidate);
    found->second.erase(key);
    if (found->second.empty()) users.erase(found);
  }
  dropUnneeded(std::move(candidates));
}

// A call that names no object changes its device's context, which the worker has made already.
void RecordTable::changeContext(const RecordedFrame& frame, const Named& named) {
  ObjectId id{api::Kind::CONTEXT, frame.device};
  auto found = live.find(id);
  if (found != live.end()) return change(found->second, frame, named);
  api::EffectOn effect{Effect::creates, id.kind, id.handle, false, false};
  create(effect, frame, named);
}

void RecordTable::destroy(uint64_t key, const RecordedFrame& frame, const Named& named) {
  auto found = records.find(key);
  if (found == records.end()) return;  // already removed with another object that the same frame destroyed
  append(found->second.recipe, frame);
  need(found->second, named.all);
  std::vector<uint64_t> fallen{key};
  for (size_t i = 0; i < fallen.size(); i++) {
    ObjectRecord& record = records.at(fallen[i]);
    record.destroyedAt = frame.number;
    record.destroyedBy = frame.place();
    live.erase(record.id);
    written.insert(fallen[i]);
    auto inside = users.find(fallen[i]);
    if (inside == users.end()) continue;
    for (uint64_t user : inside->second) {
      const ObjectRecord& child = records.at(user);
      if (child.parented && child.needs.front().record == fallen[i] && !child.destroyed()) fallen.push_back(user);
    }
  }
  auto& ending = endings[frame.place()];
  ending.insert(ending.end(), fallen.begin(), fallen.end());
}

void RecordTable::settle(const RingCut& cut) {
  std::set<uint64_t> ended;
  for (unsigned ring = 0; ring < RingCut::mostRings; ++ring) {
    executed[ring] = std::max(executed[ring], cut[ring]);
    FramePlace first{static_cast<uint8_t>(ring), 0}, last{static_cast<uint8_t>(ring), executed[ring]};
    auto begin = endings.lower_bound(first), end = endings.lower_bound(last);
    for (auto i = begin; i != end; ++i) ended.insert(i->second.begin(), i->second.end());
    endings.erase(begin, end);
  }
  dropUnneeded(std::move(ended));
}

void RecordTable::need(ObjectRecord& record, const std::vector<Need>& needs) {
  for (auto& need : needs) {
    if (need.record == record.key()) continue;
    if (std::find(record.needs.begin(), record.needs.end(), need) != record.needs.end()) continue;
    record.needs.push_back(need);
    users[need.record].insert(record.key());
  }
}

// Newest first, because an object is mostly newer than those it needs.
void RecordTable::dropUnneeded(std::set<uint64_t> candidates) {
  while (!candidates.empty()) {
    uint64_t key = *candidates.rbegin();
    candidates.erase(key);
    auto found = records.find(key);
    if (found == records.end() || stays(found->second) || isNeeded(key)) continue;
    for (auto& need : found->second.needs) candidates.insert(need.record);
    drop(key);
  }
}

// Whether another recipe may depend on the state that the object had after the frame of that number, so that this state must be kept.
bool RecordTable::usedSince(uint64_t key, uint64_t number) const {
  auto found = users.find(key);
  if (found == users.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(),
                     [&](uint64_t user) { return records.at(user).recipe.back().number > number; });
}

bool RecordTable::isNeeded(uint64_t key) const {
  std::set<uint64_t> seen{key};
  std::vector<uint64_t> ahead{key};
  while (!ahead.empty()) {
    auto found = users.find(ahead.back());
    ahead.pop_back();
    if (found == users.end()) continue;
    for (uint64_t user : found->second) {
      if (stays(records.at(user))) return true;
      if (seen.insert(user).second) ahead.push_back(user);
    }
  }
  return false;
}

void RecordTable::drop(uint64_t key) {
  for (auto& need : records.at(key).needs) {
    auto found = users.find(need.record);
    if (found == users.end()) continue;
    found->second.erase(key);
    if (found->second.empty()) users.erase(found);
  }
  users.erase(key);
  records.erase(key);
  written.erase(key);
  if (saved.erase(key) > 0) dropped.insert(key);
}

// Gives a record another key: the first frame of a context's record was superseded.
void RecordTable::rename(uint64_t from, uint64_t to) {
  auto node = records.extract(from);
  node.key() = to;
  ObjectRecord& record = records.insert(std::move(node)).position->second;
  if (!record.destroyed()) live[record.id] = to;
  for (auto& need : record.needs) {
    users[need.record].erase(from);
    users[need.record].insert(to);
  }
  auto needing = users.extract(from);
  if (!needing.empty()) {
    for (uint64_t user : needing.mapped()) {
      for (auto& need : records.at(user).needs) need.record = need.record == from ? to : need.record;
      written.insert(user);
    }
    needing.key() = to;
    users.insert(std::move(needing));
  }
  written.erase(from);
  written.insert(to);
  if (saved.erase(from) > 0) dropped.insert(from);
}

void RecordTable::insert(ObjectRecord record) {
  uint64_t key = record.key();
  KJ_REQUIRE(!records.contains(key), "two records belong to the same frame", key);
  if (record.destroyed()) {
    endings[record.destroyedBy].push_back(key);
  } else {
    bool fresh = live.emplace(record.id, key).second;
    KJ_REQUIRE(fresh, "two records describe the same object", kindName(record.id.kind), record.id.handle, key);
  }
  records.emplace(key, std::move(record));
  saved.insert(key);
}

void RecordTable::link() {
  for (auto& [key, record] : records) {
    for (auto& need : record.needs) {
      auto found = records.find(need.record);
      KJ_REQUIRE(found != records.end() && found->second.id == static_cast<const ObjectId&>(need),
                 "a record needs an object that has no record", key, kindName(need.kind), need.handle, need.record);
      users[need.record].insert(key);
    }
  }
}

const ObjectRecord* RecordTable::find(uint64_t key) const {
  auto found = records.find(key);
  return found == records.end() ? nullptr : &found->second;
}

const ObjectRecord* RecordTable::findLive(const ObjectId& id) const {
  auto found = live.find(id);
  return found == live.end() ? nullptr : find(found->second);
}

std::vector<ObjectRecord> RecordTable::takeAll() && {
  std::vector<ObjectRecord> all;
  for (auto& [key, record] : records) all.push_back(std::move(record));
  return all;
}

void RecordTable::markSaved() {
  saved.insert(written.begin(), written.end());
  written.clear();
  dropped.clear();
}

void RecordTable::markUnsaved() {
  saved.clear();
  dropped.clear();
  for (auto& [key, record] : records) written.insert(key);
}

std::vector<ObjectRecord> recordsAt(std::vector<ObjectRecord> records, const RingCut& cut) {
  std::set<uint64_t> madeSince;
  for (auto& record : records)
    if (!cut.hasExecuted(record.recipe.front().place())) madeSince.insert(record.key());
  RecordTable table;
  for (auto& record : records) {
    if (madeSince.contains(record.key())) continue;
    std::erase_if(record.recipe, [&](auto& frame) { return !cut.hasExecuted(frame.place()); });
    std::erase_if(record.needs, [&](auto& need) { return madeSince.contains(need.record); });
    if (!cut.hasExecuted(record.destroyedBy)) record.destroyedAt = 0;
    table.insert(std::move(record));
  }
  table.link();
  table.settle(cut);
  return std::move(table).takeAll();
}

}  // namespace vgpu
