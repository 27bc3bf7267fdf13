#include "vgpu/objects/record-format.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/debug.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "vgpu/objects/records.capnp.h"
#include "vgpu/wire/segment.h"

namespace vgpu {

namespace {

bool isObjectKind(api::Kind kind) {
  return kind != api::Kind::NONE && static_cast<size_t>(kind) < api::kindCount;
}

kj::Array<capnp::word> copyWords(kj::ArrayPtr<const kj::byte> bytes) {
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  if (words.size() > 0) memcpy(words.begin(), bytes.begin(), words.size() * sizeof(capnp::word));
  return words;
}

RecordedFrame decodeFrame(stored::Frame::Reader reader) {
  RecordedFrame frame;
  KJ_REQUIRE(api::isMethod(reader.getMethod()), "a recipe calls a method that does not exist", reader.getMethod());
  frame.method = static_cast<api::Method>(reader.getMethod());
  KJ_REQUIRE(api::infoOf(frame.method).replay == api::Replay::BUILD, "a recipe calls a method that does not build an object",
             api::infoOf(frame.method).name);
  KJ_REQUIRE(reader.getDevice() < maxDevices, "a recipe names a device number that is too large", reader.getDevice());
  auto message = reader.getMessage();
  KJ_REQUIRE(message.size() % sizeof(capnp::word) == 0 && message.size() <= maxFrameBytes,
             "a recipe's frame has an invalid size", message.size(), maxFrameBytes);
  frame.position = reader.getPosition();
  frame.number = reader.getNumber();
  frame.device = reader.getDevice();
  frame.words = copyWords(message);
  frame.address = reader.getAddress();
  frame.bytes = reader.getBytes();
  return frame;
}

// A record's first frame must be the one that makes the object.
void checkMaker(const ObjectRecord& record) {
  auto& maker = record.recipe.front();
  auto effects = effectsOf(maker.method, maker.words);
  bool makes = record.id.kind == api::Kind::CONTEXT
                   ? record.id.handle == maker.device
                   : std::any_of(effects.begin(), effects.end(), [&](auto& e) {
                       return e.effect == api::Effect::creates && ObjectId{e.kind, e.handle} == record.id;
                     });
  KJ_REQUIRE(makes, "a recipe's first frame does not make its object", kindName(record.id.kind), record.id.handle,
             api::infoOf(maker.method).name);
}

}  // namespace

const char* kindName(api::Kind kind) {
  return static_cast<size_t>(kind) < api::kindCount ? api::kindNames[static_cast<size_t>(kind)] : "unknown";
}

RecordedFrame RecordedFrame::clone() const {
  return {*this, kj::heapArray<capnp::word>(words.begin(), words.size())};
}

std::vector<api::EffectOn> effectsOf(api::Method method, kj::ArrayPtr<const capnp::word> words) {
  std::vector<api::EffectOn> effects;
  api::visitEffects(method, words, [&](const api::EffectOn& effect) { effects.push_back(effect); });
  return effects;
}

kj::Array<capnp::word> encodeRecord(const ObjectRecord& record) {
  size_t words = 32 + record.needs.size() * 4;
  for (auto& frame : record.recipe) words += 8 + frame.words.size();
  capnp::MallocMessageBuilder message(static_cast<unsigned>(std::min(words, maxRecordBytes / sizeof(capnp::word))));
  auto out = message.initRoot<stored::Record>();
  out.setKind(static_cast<uint16_t>(record.id.kind));
  out.setHandle(record.id.handle);
  out.setDevice(record.device);
  out.setDestroyedAt(record.destroyedAt);
  out.setDestroyedRing(record.destroyedBy.ring);
  out.setDestroyedPosition(record.destroyedBy.position);
  out.setParented(record.parented);
  out.setAddress(record.address);
  out.setBytes(record.bytes);
  auto needs = out.initNeeds(static_cast<unsigned>(record.needs.size()));
  for (unsigned i = 0; i < needs.size(); i++) {
    needs[i].setKind(static_cast<uint16_t>(record.needs[i].kind));
    needs[i].setHandle(record.needs[i].handle);
    needs[i].setRecord(record.needs[i].record);
  }
  auto recipe = out.initRecipe(static_cast<unsigned>(record.recipe.size()));
  for (unsigned i = 0; i < recipe.size(); i++) {
    const RecordedFrame& frame = record.recipe[i];
    recipe[i].setPosition(frame.position);
    recipe[i].setNumber(frame.number);
    recipe[i].setMethod(static_cast<uint16_t>(frame.method));
    recipe[i].setDevice(frame.device);
    recipe[i].setMessage(frame.words.asBytes());
    recipe[i].setAddress(frame.address);
    recipe[i].setBytes(frame.bytes);
  }
  return capnp::messageToFlatArray(message);
}

ObjectRecord decodeRecord(kj::ArrayPtr<const kj::byte> bytes) {
  KJ_REQUIRE(bytes.size() % sizeof(capnp::word) == 0 && bytes.size() <= maxRecordBytes, "a record has an invalid size",
             bytes.size(), maxRecordBytes);
  auto words = copyWords(bytes);
  capnp::FlatArrayMessageReader message(words);
  auto in = message.getRoot<stored::Record>();
  ObjectRecord record;
  record.id = {static_cast<api::Kind>(in.getKind()), in.getHandle()};
  KJ_REQUIRE(isObjectKind(record.id.kind), "a record of an unknown kind", static_cast<unsigned>(record.id.kind));
  record.device = in.getDevice();
  KJ_REQUIRE(record.device < maxDevices, "a record names a device number that is too large", record.device);
  record.destroyedAt = in.getDestroyedAt();
  record.destroyedBy = {in.getDestroyedRing(), in.getDestroyedPosition()};
  KJ_REQUIRE(record.destroyedBy.ring < maxDevices, "a record names a ring number that is too large", record.destroyedBy.ring);
  record.parented = in.getParented();
  record.address = in.getAddress();
  record.bytes = in.getBytes();
  KJ_REQUIRE(record.address + record.bytes >= record.address, "a record's range wraps around", record.address,
             record.bytes);
  KJ_REQUIRE(in.getNeeds().size() <= maxNeeds && in.getRecipe().size() <= maxRecipeFrames, "a record has too many needs or frames",
             in.getNeeds().size(), in.getRecipe().size());
  KJ_REQUIRE(!record.parented || in.getNeeds().size() > 0, "a record has a parent but no needs");
  KJ_REQUIRE(in.getRecipe().size() > 0, "a record without a recipe", kindName(record.id.kind), record.id.handle);
  for (auto need : in.getNeeds()) record.needs.push_back({{static_cast<api::Kind>(need.getKind()), need.getHandle()}, need.getRecord()});
  for (auto frame : in.getRecipe()) {
    record.recipe.push_back(decodeFrame(frame));
    size_t count = record.recipe.size();
    KJ_REQUIRE(count < 2 || record.recipe[count - 2].number < record.recipe[count - 1].number,
               "a recipe's frames are not in order", kindName(record.id.kind), record.id.handle, frame.getNumber());
  }
  checkMaker(record);
  return record;
}

}  // namespace vgpu
