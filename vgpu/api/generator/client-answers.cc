// Emits how an entry's results reach the program: from a reply, from the client's remembered state, or from a function's report.
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>

#include "client-half.h"

namespace vgpu::generator {

void ClientHalf::readAnswer(const Clause& clause) {
  if (clause[0] == "unsafe") checks = "    if (CUresult refused = thread.refuseUnsafe()) return refused;\n" + checks;
  if (isList(clause)) return list(clause);
  if (clause.size() >= 3 && clause[1] == "from") return giveReported(*row.findParameter(clause[0]), clause);
  if (clause.size() < 3 || clause[1] != "=") return;
  const bool isMember = clause[0].find('.') != std::string::npos;
  const std::string whole = clause[0].substr(0, clause[0].find('.')), name = unbracketed(whole), length = bracketed(whole);
  const Parameter* p = row.findParameter(name);
  KJ_REQUIRE(p != nullptr, "the entry has no such parameter", name.c_str());
  if (isMember) {
    returns += fmt::format("    answer(&{}, {});\n", translated(clause[0]), translated(clause[2]));
  } else if (length.empty()) {
    give(*p, translated(clause[2], wordBehind(clause, "else", "0")));
  } else {
    returns += fmt::format("    if ({0} <= 0) return CUDA_ERROR_INVALID_VALUE;\n    answerText({1}, {0}, {2});\n", length, name,
                           translated(clause[2]));
  }
}

void ClientHalf::list(const Clause& clause) {
  std::string edges = clause[1] == "=" ? "" : ", " + clause[1];
  returns += fmt::format("    if (CUresult bad = answerList({}, {{{}, {}{}}})) return bad;\n", translated(clause.back()),
                         unbracketed(clause[0]), bracketed(clause[0]), edges);
}

void ClientHalf::giveReported(const Parameter& p, const Clause& clause) {
  std::string call = translated(joined(clause, 2));
  returns += fmt::format("    uint64_t {0}Value = 0;\n    if (CUresult error = {1}, {0}Value)) return error;\n", p.name,
                         call.substr(0, call.size() - 1));
  give(p, p.name + "Value");
}

void ClientHalf::give(const Parameter& p, const std::string& value) {
  std::string statement = fmt::format("answer({}, {});", p.name, value);
  returns += isNamed(row, "optional", p.name) ? fmt::format("    if ({} != nullptr) {}\n", p.name, statement)
                                              : fmt::format("    {}\n", statement);
}

bool ClientHalf::isFound(const std::string& parameter) const {
  return std::ranges::any_of(row.find(parameter), [](auto& clause) { return clause[1] == "found"; });
}

std::string ClientHalf::translated(const std::string& source, const std::string& otherwise) const {
  size_t dot = source.find('.');
  std::string object = source.substr(0, dot), rest = dot == std::string::npos ? "" : source.substr(dot + 1);
  if (object == "current") return "thread.session.devices[thread.device()]." + rest;
  if (object == "session") return "thread.session." + rest;
  const Parameter* p = row.findParameter(object);
  if (p == nullptr || rest.empty()) return source;
  if (p->type == "CUdevice") return fmt::format("{}Info.{}", object, rest);
  if (table.objects.contains(p->type) || isFound(object)) return fmt::format("{}Found->{}", object, rest);
  const Kind* kind = table.findKindOfType(p->type);
  if (kind == nullptr && p->isPointer()) return fmt::format("{}->{}", object, rest);
  KJ_REQUIRE(kind != nullptr, "a remembered value must belong to an object or a device", source.c_str());
  std::string member = fmt::format("{}Entry->{}", object, rest);
  if (!kind->nullable) return member;
  return fmt::format("valueOr({0}Entry, [](auto& entry) {{ return toWire(valueOf(entry.{1})); }}, {2})", object, rest,
                     otherwise);
}

bool ClientHalf::uses(const std::string& object) const {
  return std::ranges::any_of(row.clauses, [&](auto& clause) {
    return clause[0].starts_with(object) || (clause.size() >= 3 && clause[2].starts_with(object));
  });
}

std::string ClientHalf::resultOf(const Field& field, const std::string& type) const {
  return fmt::format("{}.results<api::Cuda::{}Results>().get{}{}()", row.find("cached").empty() ? "frame" : "reply",
                     row.typeName(), field.accessor(), field.type == Type::structure ? "<" + type + ">" : "");
}

bool ClientHalf::isList(const Clause& clause) const {
  const Parameter* length = row.findParameter(bracketed(clause[0]));
  return length != nullptr && length->isPointer();
}

bool ClientHalf::isOfList(const std::string& parameter) const {
  return std::ranges::any_of(row.clauses, [&](auto& clause) {
    return isList(clause) &&
           (parameter == unbracketed(clause[0]) || parameter == bracketed(clause[0]) || parameter == clause[1]);
  });
}

}  // namespace vgpu::generator
