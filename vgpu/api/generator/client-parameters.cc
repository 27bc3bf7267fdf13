// Emits how the parameters of an entry are put into a frame.
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>

#include "client-half.h"

namespace vgpu::generator {

void ClientHalf::readParameter(const Parameter& p) {
  const Field* field = row.byClauses ? nullptr : findField(p);
  const Field* result = row.byClauses ? nullptr : row.results.find(p.name);
  const Kind* kind = table.findKindOfType(p.type);
  if (isOfList(p.name)) return;
  if (auto object = table.objects.find(p.type); object != table.objects.end()) {
    checks +=
        fmt::format("    auto {0}Found = {1}(thread, {0});\n    if ({0}Found == nullptr) return CUDA_ERROR_INVALID_VALUE;\n",
                    p.name, object->second);
  } else if (field != nullptr && field->isNumber() && field->effect == Effect::creates) {
    create(p, *field);
  } else if (kind != nullptr) {
    for (auto& clause : row.find(p.name))
      if (isOfNull(clause)) checkValue(p, clause);
    resolve(p, *kind, field);
  } else if (p.type == "CUdevice") {
    checks += fmt::format(
        "    if (!thread.session.hasDevice({0})) return CUDA_ERROR_INVALID_DEVICE;\n"
        "    [[maybe_unused]] auto& {0}Info = thread.session.devices[static_cast<size_t>({0})];\n",
        p.name);
    if (field != nullptr) put(*field, numberOf(*field, p.name));
    if (field != nullptr && target == "thread") target = fmt::format("thread.on(static_cast<unsigned>({}))", p.name);
  } else if (field != nullptr && !field->isNumber()) {
    pack(p, *field);
  } else if (result != nullptr && !result->count.empty()) {
    return takeList(p, *result);
  } else if (p.isPointer() && !isNamed(row, "optional", p.name) && !isNamed(row, "address", p.name)) {
    checks += nullCheck(p.name);
  }
  checkEnumeration(p);
  for (auto& clause : row.find(p.name))
    if (kind == nullptr || !isOfNull(clause)) checkValue(p, clause);
  for (auto& clause : row.clauses)
    if (clause[0].starts_with(p.name + ".")) checkValue(p, clause);
  if (result != nullptr && field != nullptr && field->isNumber()) return takeRoom(p, *field);
  if (result != nullptr) give(p, resultOf(*result, p.pointee()));
  if (field != nullptr && field->isNumber() && field->effect == Effect::none && p.type != "CUdevice")
    put(*field, numberOf(*field, fmt::format("toWire({})", p.name)));
}

void ClientHalf::pack(const Parameter& p, const Field& field) {
  std::string value, bytes;
  if (field.type == Type::text) {
    checks += field.optional ? fmt::format("    if ({0} == nullptr) {0} = \"\";\n", p.name) : nullCheck(p.name);
    checks += fmt::format("    if (std::strlen({}) > maxNameBytes) return CUDA_ERROR_INVALID_VALUE;\n", p.name);
    value = p.name;
    bytes = fmt::format("std::strlen({}) + 1", p.name);
  } else if (field.type == Type::structure) {
    checks += nullCheck(p.name);
    value = "*" + p.name;
    bytes = "sizeof *" + p.name;
  } else {
    // A list of a FRAME has the number of elements that its parameter's `reads` clause gives.
    std::string count = field.count == "[]" ? findCount(row, "reads", p.name).value_or("") : field.count;
    if (!count.empty()) count = fmt::format(", static_cast<uint64_t>({})", count);
    checks += fmt::format("    Packed {0}Data;\n    if (CUresult bad = {0}Data.add(thread, {1}, {2}{0}{3}, {4})) return bad;\n",
                          p.name, describedOf(table, field), p.isPointer() ? "" : "&", count, field.optional);
    value = p.name + "Data.get()";
    bytes = p.name + "Data.size()";
  }
  put(field, value);
  dataWords += fmt::format(" + dataWords({})", bytes);
}

void ClientHalf::takeList(const Parameter& p, const Field& result) {
  const Parameter* count = row.findParameter(result.count);
  const bool isRoomKnown = count != nullptr && count->isPointer();
  if (!isRoomKnown && !isNamed(row, "optional", p.name))
    checks += fmt::format("    if ({} == nullptr && {} != 0) return CUDA_ERROR_INVALID_VALUE;\n", p.name, result.count);
  returns += fmt::format("    answerList({}, {}{}, {}, {});\n", p.name, isRoomKnown ? "*" : "", result.count,
                         result.elementType == "void" ? 1 : table.types.bytesOf(result.elementType), resultOf(result, ""));
}

void ClientHalf::takeRoom(const Parameter& p, const Field& field) {
  std::string lists;
  for (auto& result : row.results.fields)
    if (result.count == p.name) lists += fmt::format("{}{} != nullptr", lists.empty() ? "" : " || ", result.name);
  put(field, fmt::format("{} ? *{} : 0", lists, p.name));
  counts += fmt::format("    answerCount({}, {}, {});\n", p.name, lists, resultOf(*row.results.find(p.name), ""));
}

void ClientHalf::create(const Parameter& p, const Field& field) {
  checks += nullCheck(p.name);
  const Kind& kind = *table.findKind(field.kind);
  remember([&](auto& member, auto& value) {
    if (member != kind.spareBy) return;
    remembers += fmt::format(
        "    if (uint64_t spare = thread.session.{}.take(thread, {}))\n"
        "      return *{} = fromWire<{}>(spare), CUDA_SUCCESS;\n",
        kind.spares, value, p.name, p.pointee());
  });
  remembers += fmt::format("    NewHandle {}Made(thread, {});\n", p.name, kindOf(field.kind));
  remember([&](auto& member, auto& value) {
    remembers += fmt::format("    thread.session.handles.find<{}>({}Made.get())->{} = {};\n", kindOf(field.kind), p.name, member, value);
  });
  put(field, p.name + "Made.get()");
  returns += fmt::format("    *{0} = fromWire<{1}>({0}Made.keep());\n", p.name, p.pointee());
}

void ClientHalf::resolve(const Parameter& p, const Kind& kind, const Field* field) {
  bool nullable = field == nullptr ? kind.nullable : field->nullable;
  checks += fmt::format(
      "    uint64_t {0}Handle = {1};\n"
      "    if (CUresult bad = thread.resolve({2}, {3}, {0}Handle)) return bad;\n",
      p.name,
      isNamed(row, "current", p.name) ? fmt::format("{0} == nullptr ? thread.{1}() : toWire({0})", p.name, kind.name)
                                      : fmt::format("toWire({})", p.name),
      kindOf(kind.name), nullable);
  if (uses(p.name + ".") || isNamed(row, "cached", p.name))
    checks += fmt::format("    auto* {0}Entry = thread.session.handles.find<{1}>({0}Handle);\n", p.name, kindOf(kind.name)) +
              (nullable ? "" : fmt::format("    if ({}Entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;\n", p.name));
  if (field == nullptr) return;
  if (kind.name == "stream" && field->effect == Effect::uses && row.find("captured").empty())
    checks += fmt::format("    if (CUresult refused = thread.refuseCaptured({}Handle)) return refused;\n", p.name);
  put(*field, p.name + "Handle");
  if (!isOfObject) target = fmt::format("thread.of({}Handle)", p.name);
  isOfObject = true;
  if (kind.name == "stream" && !row.noWork) sets += fmt::format("    frame.inStream({}Handle);\n", p.name);
  if (field->effect == Effect::destroys && !kind.spares.empty())
    remembers += fmt::format("    if (thread.session.{}.keep(thread, {}Handle)) return CUDA_SUCCESS;\n", kind.spares, p.name);
  if (field->effect == Effect::destroys)
    returns += fmt::format("    thread.destroy({}, {}Handle);\n", kindOf(kind.name), p.name);
  if (field->effect == Effect::changes) {
    returns += fmt::format("    thread.changed({}, {}Handle);\n", kindOf(kind.name), p.name);
    remember([&](auto& member, auto& value) {
      returns += fmt::format("    if (auto* changed = thread.session.handles.find<{}>({}Handle)) changed->{} = {};\n", kindOf(kind.name),
                             p.name, member, value);
    });
  }
}

void ClientHalf::put(const Field& field, const std::string& value) {
  sets += fmt::format("    frame->set{}({});\n", field.accessor(), value);
}

std::string ClientHalf::numberOf(const Field& field, const std::string& value) {
  return fmt::format("static_cast<{}>({})", infoOf(field.type).cpp, value);
}

std::string ClientHalf::nullCheck(const std::string& name) {
  return fmt::format("    if ({} == nullptr) return CUDA_ERROR_INVALID_VALUE;\n", name);
}

const Field* ClientHalf::findField(const Parameter& p) const {
  for (auto& clause : row.find(p.name))
    if (clause[1] == "as") {
      const Field* field = row.frame.find(clause.at(2));
      KJ_REQUIRE(field != nullptr, "the frame has no such field", clause[2].c_str());
      return field;
    }
  return row.frame.find(p.name);
}

}  // namespace vgpu::generator
