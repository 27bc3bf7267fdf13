// The rules of the list, also with effects that no frame of the present schema has, against a model that knows the whole history.
#include "vgpu/objects/record-table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "frames.h"
#include "vgpu/objects/record-format.h"

using namespace vgpu;
using namespace vgpu::test;
using api::Effect;
using api::Kind;

namespace {

struct Step {
  RecordedFrame frame;
  std::vector<api::EffectOn> effects;
};

RecordedFrame plainFrame(uint64_t position) {
  return makeFrame<api::Cuda::StreamCreateParams>(position, api::Method::streamCreate, 0, [](auto) {});
}

// Passes a frame to the table: one that the worker has executed already, or one that it has not.
void enter(RecordTable& table, const Step& step) {
  table.apply(step.frame.clone(), kj::arrayPtr(step.effects.data(), step.effects.size()));
}
void apply(RecordTable& table, const Step& step) {
  enter(table, step);
  table.settle(step.frame.position + 1);
}

api::EffectOn on(Effect effect, uint64_t handle, bool parent = false) {
  return {effect, Kind::EVENT, handle, parent, false};
}

Step makes(uint64_t position, uint64_t handle, std::vector<uint64_t> uses = {}, bool parented = false) {
  Step step{plainFrame(position), {on(Effect::creates, handle)}};
  for (size_t i = 0; i < uses.size(); i++) step.effects.push_back(on(Effect::uses, uses[i], parented && i == 0));
  return step;
}
Step ends(uint64_t position, uint64_t handle) { return {plainFrame(position), {on(Effect::destroys, handle)}}; }
Step sets(uint64_t position, uint64_t handle, int attribute, int value) {
  return {funcSetAttribute(position, handle, attribute, value), {on(Effect::changes, handle)}};
}

// ---------------------------------------------------------------- the model
// Executes frames as a device would: strictly, and each object stores everything that went into it.

struct Simulated {
  uint64_t value = 0;  // what it was made from
  std::map<int, int> settings;
  std::optional<uint64_t> parent;
};

uint64_t mix(uint64_t a, uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15 + (a >> 29); }

struct Device {
  std::map<uint64_t, Simulated> objects;

  uint64_t contentOf(uint64_t handle) const {
    const Simulated& object = objects.at(handle);
    uint64_t content = object.value;
    for (auto [attribute, value] : object.settings) content = mix(mix(content, attribute), value);
    return content;
  }

  // False if a real device would refuse the step.
  bool execute(const Step& step) {
    uint64_t content = step.frame.position;
    std::optional<uint64_t> parent;
    for (auto& e : step.effects) {
      if ((e.effect == Effect::creates) == objects.contains(e.handle)) return false;
      if (e.effect == Effect::uses) content = mix(content, contentOf(e.handle));
      if (e.parent) parent = e.handle;
    }
    for (auto& e : step.effects) {
      if (e.effect == Effect::creates) objects[e.handle] = {content, {}, parent};
      if (e.effect == Effect::changes) change(objects[e.handle], step.frame, content);
      if (e.effect == Effect::destroys) destroy(e.handle);
    }
    return true;
  }

  static void change(Simulated& object, const RecordedFrame& frame, uint64_t content) {
    if (frame.method != api::Method::funcSetAttribute) {
      object.value = mix(object.value, content);
      return;
    }
    api::FrameReader<api::Cuda::FuncSetAttributeParams> p(frame.words);
    object.settings[p.getAttrib()] = p.getValue();
  }

  void destroy(uint64_t handle) {
    objects.erase(handle);
    std::vector<uint64_t> inside;
    for (auto& [other, object] : objects)
      if (object.parent == handle) inside.push_back(other);
    for (uint64_t other : inside) destroy(other);
  }

  std::map<uint64_t, uint64_t> contents() const {
    std::map<uint64_t, uint64_t> all;
    for (auto& [handle, object] : objects) all[handle] = contentOf(handle);
    return all;
  }
};

// A random next frame that the device would accept. Handles come from a small pool, so they are reused.
Step randomStep(std::mt19937& random, const Device& device, uint64_t position) {
  auto pick = [&](uint64_t below) { return random() % below; };
  std::vector<uint64_t> alive;
  for (auto& [handle, object] : device.objects) alive.push_back(handle);
  uint64_t handle = 1 + pick(24), what = pick(10);
  if (!device.objects.contains(handle)) {
    std::set<uint64_t> uses;
    for (uint64_t i = pick(3); i > 0 && !alive.empty(); i--) uses.insert(alive[pick(alive.size())]);
    return makes(position, handle, {uses.begin(), uses.end()}, pick(2) == 0);
  }
  if (what < 4) return ends(position, handle);
  if (what < 7) return sets(position, handle, static_cast<int>(pick(3)), static_cast<int>(pick(100)));
  Step step{plainFrame(position), {on(Effect::changes, handle)}};
  uint64_t used = alive[pick(alive.size())];
  if (used != handle) step.effects.push_back(on(Effect::uses, used));
  return step;
}

std::set<uint64_t> positionsIn(const RecordTable& table) {
  std::set<uint64_t> positions;
  for (auto& [key, record] : table.all())
    for (auto& frame : record.recipe) positions.insert(frame.position);
  return positions;
}

ObjectRecord copyOf(const ObjectRecord& record) {
  ObjectRecord copy{record.id,          record.device,   record.address, record.bytes,
                    record.destroyedAt, record.parented, record.needs,   {},
                    record.destroyedBy};
  for (auto& frame : record.recipe) copy.recipe.push_back(frame.clone());
  return copy;
}

std::vector<ObjectRecord> copyOf(const RecordTable& table) {
  std::vector<ObjectRecord> records;
  for (auto& [key, record] : table.all()) records.push_back(copyOf(record));
  return records;
}

// The table contains only records that a live object needs.
void checkMinimal(const RecordTable& table) {
  std::set<uint64_t> wanted;
  std::vector<uint64_t> ahead;
  for (auto& [key, record] : table.all())
    if (!record.destroyed()) ahead.push_back(key);
  while (!ahead.empty()) {
    uint64_t key = ahead.back();
    ahead.pop_back();
    if (!wanted.insert(key).second) continue;
    for (auto& need : table.find(key)->needs) ahead.push_back(need.record);
  }
  CHECK(table.all().size() == wanted.size());
}

}  // namespace

TEST_CASE("objects rebuilt from the list equal those that the whole history made") {
  for (unsigned seed = 0; seed < 60; seed++) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    RecordTable table;
    Device original;
    std::map<uint64_t, Step> history;
    for (uint64_t position = 1; position <= 400; position++) {
      Step step = randomStep(random, original, position);
      REQUIRE(original.execute(step));
      apply(table, step);
      history.emplace(position, std::move(step));
      if (position % 40 != 0) continue;
      Device rebuilt;
      bool taken = true;
      for (uint64_t p : positionsIn(table)) taken = taken && rebuilt.execute(history.at(p));
      REQUIRE(taken);
      CHECK(rebuilt.contents() == original.contents());
      checkMinimal(table);
      for (auto& [handle, object] : original.objects) CHECK(table.findLive({Kind::EVENT, handle}) != nullptr);
    }
  }
}

TEST_CASE("with frames pending, the list gives the state at the worker's position") {
  for (unsigned seed = 0; seed < 60; seed++) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    RecordTable table;
    Device ahead, atBarrier;
    std::map<uint64_t, Step> history;
    uint64_t position = 1;
    for (int round = 0; round < 8; round++) {
      // The worker's true position is `barrier`; the position that it has reported, `executed`, may be older.
      uint64_t executed = position + random() % 40, barrier = executed + random() % 10, end = barrier + random() % 30;
      for (; position < end; position++) {
        Step step = randomStep(random, ahead, position);
        while (position >= barrier &&
               step.frame.method == api::Method::funcSetAttribute)  // settings wait for their reply, so none is pending
          step = randomStep(random, ahead, position);
        REQUIRE(ahead.execute(step));
        if (position < barrier) REQUIRE(atBarrier.execute(step));
        enter(table, step);
        history.emplace(position, std::move(step));
        if (random() % 8 == 0) table.settle(std::min(position, executed));
      }
      Device rebuilt;
      std::set<uint64_t> positions;
      for (auto& record : recordsAt(copyOf(table), barrier)) {
        CHECK(record.destroyedAt < barrier);
        for (auto& frame : record.recipe) positions.insert(frame.position);
      }
      bool taken = true;
      for (uint64_t p : positions) taken = taken && p < barrier && rebuilt.execute(history.at(p));
      REQUIRE(taken);
      CHECK(rebuilt.contents() == atBarrier.contents());
      atBarrier = ahead;  // the pending frames are executed
      table.settle(position);
      checkMinimal(table);
    }
  }
}

TEST_CASE("with several rings, the list gives the state at which each has reached its own position") {
  constexpr unsigned rings = 3;
  constexpr uint64_t apart = 1000;  // separates handles of different rings
  for (unsigned seed = 0; seed < 40; seed++) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    RecordTable table;
    std::array<Device, rings> ahead, atBarrier;
    std::map<uint64_t, std::pair<unsigned, Step>> history;  // by frame number
    RingCut head(64);
    uint64_t number = 0;
    for (int round = 0; round < 6; round++) {
      RingCut barrier = head, executed = head;
      for (unsigned ring = 0; ring < rings; ring++) {
        barrier[ring] += random() % 40;
        executed[ring] += random() % 40;
      }
      for (int steps = 0; steps < 100; steps++) {
        unsigned ring = random() % rings;
        ++number;
        Step step = randomStep(random, ahead[ring], number);
        bool isPending = head[ring] >= barrier[ring];
        while (isPending && step.frame.method == api::Method::funcSetAttribute) step = randomStep(random, ahead[ring], number);
        REQUIRE(ahead[ring].execute(step));
        if (!isPending) REQUIRE(atBarrier[ring].execute(step));
        Step entered{step.frame.clone(), step.effects};
        entered.frame.device = static_cast<uint8_t>(ring);
        entered.frame.position = head[ring]++;
        for (auto& effect : entered.effects) effect.handle += ring * apart;
        enter(table, entered);
        history.emplace(number, std::pair(ring, std::move(step)));
        RingCut known = executed;
        for (unsigned each = 0; each < rings; each++) known[each] = std::min({head[each], executed[each], barrier[each]});
        if (random() % 8 == 0) table.settle(known);
      }
      for (unsigned ring = 0; ring < rings; ring++) barrier[ring] = std::min(barrier[ring], head[ring]);
      std::array<Device, rings> rebuilt;
      std::set<uint64_t> numbers;
      for (auto& record : recordsAt(copyOf(table), barrier))
        for (auto& frame : record.recipe) {
          CHECK(barrier.hasExecuted(frame.place()));
          numbers.insert(frame.number);
        }
      bool taken = true;
      for (uint64_t each : numbers) taken = taken && rebuilt[history.at(each).first].execute(history.at(each).second);
      REQUIRE(taken);
      for (unsigned ring = 0; ring < rings; ring++) CHECK(rebuilt[ring].contents() == atBarrier[ring].contents());
      atBarrier = ahead;
      table.settle(head);
      checkMinimal(table);
    }
  }
}

TEST_CASE("a table that was saved and linked again continues like the original") {
  std::mt19937 random(7);
  RecordTable table;
  Device device;
  std::map<uint64_t, ObjectRecord> stored;
  for (uint64_t position = 1; position <= 2000; position++) {
    Step step = randomStep(random, device, position);
    REQUIRE(device.execute(step));
    apply(table, step);
    if (position % 50 != 0) continue;
    // As a store would: writes only changes.
    for (uint64_t key : table.unsavedDrops()) CHECK(stored.erase(key) == 1);
    for (uint64_t key : table.unsaved()) {
      stored[key] = copyOf(*table.find(key));
    }
    table.markSaved();
    REQUIRE(stored.size() == table.all().size());
    RecordTable again;
    for (auto& [key, record] : stored) again.insert(copyOf(record));
    again.link();
    CHECK(positionsIn(again) == positionsIn(table));
    table = std::move(again);
  }
}

TEST_CASE("a destroyed object is kept while one made from it lives, and its handle is free") {
  RecordTable table;
  apply(table, makes(1, 10));
  apply(table, makes(2, 20, {10}));
  apply(table, ends(3, 10));
  REQUIRE(table.find(1) != nullptr);
  CHECK(table.find(1)->destroyedAt == 3);
  CHECK(table.find(1)->recipe.back().position == 3);
  apply(table, makes(4, 10));
  CHECK(table.findLive({Kind::EVENT, 10})->key() == 4);
  apply(table, ends(5, 20));
  CHECK(positionsIn(table) == std::set<uint64_t>{4});
}

TEST_CASE("objects that need each other are removed when the last of them is destroyed") {
  RecordTable table;
  apply(table, makes(1, 10));
  apply(table, makes(2, 20, {10}));
  apply(table, {plainFrame(3), {on(Effect::changes, 10), on(Effect::uses, 20)}});
  apply(table, ends(4, 10));
  CHECK(table.all().size() == 2);
  apply(table, ends(5, 20));
  CHECK(table.all().empty());
}

TEST_CASE("a setting is kept if something was made from the object while it was in force") {
  RecordTable table;
  apply(table, makes(1, 10));
  apply(table, sets(2, 10, 8, 1));
  apply(table, makes(3, 20, {10}));
  apply(table, sets(4, 10, 8, 2));
  apply(table, sets(5, 10, 8, 3));
  CHECK(positionsIn(table) == std::set<uint64_t>{1, 2, 3, 5});
}

TEST_CASE("frames passed out of order are sorted by position") {
  RecordTable table;
  apply(table, makes(1, 10));
  apply(table, sets(5, 10, 8, 1));
  apply(table, sets(3, 10, 9, 1));
  auto& recipe = table.find(1)->recipe;
  REQUIRE(recipe.size() == 3);
  CHECK(recipe[1].position == 3);
  CHECK(recipe[2].position == 5);
}

TEST_CASE("of two settings passed out of order the later one holds") {
  RecordTable table;
  apply(table, makes(1, 10));
  apply(table, sets(5, 10, 8, 1));
  apply(table, sets(3, 10, 8, 2));
  CHECK(positionsIn(table) == std::set<uint64_t>{1, 5});
  apply(table, makes(7, 20, {10}));
  apply(table, sets(9, 10, 8, 3));
  apply(table, sets(6, 10, 8, 4));  // the object of frame 7 was made while this setting was in force
  CHECK(positionsIn(table) == std::set<uint64_t>{1, 5, 6, 7, 9});
}

TEST_CASE("a frame that makes two objects is refused") {
  RecordTable table;
  CHECK_THROWS_AS(apply(table, {plainFrame(1), {on(Effect::creates, 1), on(Effect::creates, 2)}}), kj::Exception);
  CHECK(table.all().empty());
}

TEST_CASE("a record that needs a missing one is not linked") {
  RecordTable table;
  ObjectRecord record;
  record.id = {Kind::EVENT, 5};
  record.needs.push_back({{Kind::EVENT, 6}, 1});
  record.recipe.push_back(plainFrame(9));
  table.insert(std::move(record));
  CHECK_THROWS_WITH_AS(table.link(), doctest::Contains("needs an object that has no record"), kj::Exception);
}
