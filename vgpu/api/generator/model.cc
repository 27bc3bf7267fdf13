#include "model.h"

#include <kj/debug.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace vgpu::generator {

namespace {

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// Annotation ids, as annotations.capnp gives them.
enum : uint64_t {
  entryId = 0xe2b0c9a4d1f35701, driverId = 0xe2b0c9a4d1f35704, routeId, replayId, reasonId, clientByHandId,
  workerByHandId, noWorkId,
  createsId = 0xe2b0c9a4d1f35711, usesId, changesId, destroysId, parentId, nullableId
};

template <typename E>
std::string enumerantName(uint16_t value) {
  auto enumerants = capnp::Schema::from<E>().getEnumerants();
  KJ_REQUIRE(value < enumerants.size(), "an enumerant the generator does not know; build it again");
  return enumerants[value].getProto().getName().cStr();
}

std::string wireType(capnp::Type type) {
  switch (type.which()) {
    case capnp::schema::Type::BOOL: return "bool";
    case capnp::schema::Type::INT8: return "int8_t";
    case capnp::schema::Type::INT16: return "int16_t";
    case capnp::schema::Type::INT32: return "int32_t";
    case capnp::schema::Type::INT64: return "int64_t";
    case capnp::schema::Type::UINT8: return "uint8_t";
    case capnp::schema::Type::UINT16: return "uint16_t";
    case capnp::schema::Type::UINT32: return "uint32_t";
    case capnp::schema::Type::UINT64: return "uint64_t";
    case capnp::schema::Type::FLOAT32: return "float";
    case capnp::schema::Type::FLOAT64: return "double";
    default: return "";
  }
}

// Of a number that is no bool.
uint32_t wireBytes(capnp::Type type) {
  switch (type.which()) {
    case capnp::schema::Type::INT8: case capnp::schema::Type::UINT8: return 1;
    case capnp::schema::Type::INT16: case capnp::schema::Type::UINT16: return 2;
    case capnp::schema::Type::INT32: case capnp::schema::Type::UINT32: case capnp::schema::Type::FLOAT32: return 4;
    default: return 8;
  }
}

Field readField(capnp::StructSchema::Field schema) {
  auto proto = schema.getProto();
  Field field;
  field.name = proto.getName().cStr();
  field.accessor = capitalised(field.name);
  field.type = wireType(schema.getType());
  field.isData = schema.getType().isData();
  auto slot = proto.getSlot();
  field.hasDefault = slot.getHadExplicitDefault();
  field.place = slot.getOffset() * (field.type == "bool" ? 1 : wireBytes(schema.getType()));
  for (auto annotation : proto.getAnnotations()) {
    auto effect = Effect::none;
    switch (annotation.getId()) {
      case createsId: effect = Effect::creates; break;
      case usesId: effect = Effect::uses; break;
      case changesId: effect = Effect::changes; break;
      case destroysId: effect = Effect::destroys; break;
      case parentId: field.parent = true; break;
      case nullableId: field.nullable = true; break;
    }
    if (effect != Effect::none) {
      field.effect = effect;
      field.kind = enumerantName<api::Kind>(annotation.getValue().getEnum());
    }
  }
  return field;
}

std::vector<Field> readFields(capnp::StructSchema schema) {
  std::vector<Field> fields;
  for (auto field : schema.getFields()) fields.push_back(readField(field));
  return fields;
}

void check(const Method& method) {
  KJ_CONTEXT(method.name.c_str());
  if (!method.onWire()) {
    KJ_REQUIRE(!method.reason.empty(), "a local entry says why it is local");
    return;
  }
  if (!method.clientGenerated() && !method.workerGenerated()) return;
  for (auto& parameter : method.signature) {
    KJ_REQUIRE(method.findParameter(parameter.name) != nullptr || method.findResult(parameter.name) != nullptr,
               "the entry has a parameter that is neither parameter nor result of the row", parameter.name.c_str());
  }
}

}  // namespace

bool Method::isFlat() const {
  return dataWords != 0 && pointers <= 1 && std::all_of(parameters.begin(), parameters.end(), [](const Field& field) {
           return !field.hasDefault && (!field.type.empty() || field.isData);
         });
}

const Field* Method::findParameter(const std::string& wanted) const {
  for (auto& field : parameters)
    if (field.name == wanted) return &field;
  return nullptr;
}

const Field* Method::findResult(const std::string& wanted) const {
  for (auto& field : results)
    if (field.name == wanted) return &field;
  return nullptr;
}

std::vector<Method> readMethods(const capnp::SchemaLoader& loader, uint64_t fileId, const Entries& entries) {
  std::vector<Method> methods;
  for (auto nested : loader.get(fileId).getProto().getNestedNodes()) {
    if (nested.getName() != "Cuda") continue;
    for (auto schema : loader.get(nested.getId()).asInterface().getMethods()) {
      Method method;
      method.ordinal = schema.getOrdinal();
      method.name = schema.getProto().getName().cStr();
      method.typeName = capitalised(method.name);
      method.parameterSchema = schema.getParamType();
      method.resultSchema = schema.getResultType();
      method.parameters = readFields(method.parameterSchema);
      method.results = readFields(method.resultSchema);
      method.hasResults = !method.results.empty();
      auto layout = method.parameterSchema.getProto().getStruct();
      method.dataWords = layout.getDataWordCount();
      method.pointers = layout.getPointerCount();
      for (auto annotation : schema.getProto().getAnnotations()) {
        auto value = annotation.getValue();
        switch (annotation.getId()) {
          case entryId: method.entry = value.getText().cStr(); break;
          case driverId: method.driver = value.getText().cStr(); break;
          case routeId: method.route = static_cast<api::Route>(value.getEnum()); break;
          case replayId: method.replay = static_cast<api::Replay>(value.getEnum()); break;
          case reasonId: method.reason = value.getText().cStr(); break;
          case clientByHandId: method.clientByHand = value.getText().cStr(); break;
          case workerByHandId: method.workerByHand = value.getText().cStr(); break;
          case noWorkId: method.noWork = true; break;
        }
      }
      if (method.driver.empty()) method.driver = method.entry;
      if (!method.entry.empty()) {
        auto entry = entries.find(method.entry);
        KJ_REQUIRE(entry != entries.end(), "the driver API has no such entry", method.entry.c_str());
        method.since = entry->second.since;
        method.signature = entry->second.parameters;
      }
      check(method);
      methods.push_back(method);
    }
  }
  KJ_REQUIRE(!methods.empty(), "the schema has no interface Cuda");
  return methods;
}

std::string enumerantOf(const std::string& name) {
  std::string out;
  for (char c : name) {
    if (std::isupper(static_cast<unsigned char>(c))) out += '_';
    out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

const char* routeName(api::Route route) {
  constexpr const char* names[] = {"post", "call", "signal", "local"};
  return names[static_cast<uint16_t>(route)];
}

const char* replayName(api::Replay replay) {
  constexpr const char* names[] = {"query", "build", "work", "forbid"};
  return names[static_cast<uint16_t>(replay)];
}

}  // namespace vgpu::generator
