// The program's half of a row: checks, one statement a parameter; then the frame or what the client remembers; then what comes
// back.
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <map>
#include <span>

#include "text.h"

namespace vgpu::generator {

namespace {

class ClientHalf {
 public:
  ClientHalf(const Table& table, const Row& row) : table(table), row(row) {}

  std::string emit() {
    auto declaration = [](auto& p) { return fmt::format("[[maybe_unused]] {} {}", p.type, p.name); };
    std::string out = fmt::format("extern \"C\" VGPU_EXPORT CUresult CUDAAPI {}({}) {{\n", row.symbol,
                                  joined(row.parameters, ", ", declaration));
    if (!row.alias.empty()) {
      for (auto& p : row.parameters)
        for (auto& clause : row.find(p.name)) checkValue(p, clause);
      const bool isEntry = row.alias.starts_with("cu");  // that one notes its own failure
      return out + fmt::format(fmt::runtime(isEntry ? "{0}  return {1};\n}}\n\n" : "{0}  return noted(\"{2}\", {1});\n}}\n\n"), checks,
                               row.alias, row.symbol);
    }
    for (auto& p : row.parameters) readParameter(p);
    for (auto& clause : row.find("captured")) capture(clause);
    for (auto& clause : row.clauses) readAnswer(clause);
    for (auto& clause : row.find("splits")) out += split(clause);
    if (row.level == "process") return out + checks + returns + "    return CUDA_SUCCESS;\n}\n\n";
    const char* enter = row.level == "any" ? "enterAny" : row.level == "context" ? "enterContext" : "enter";
    out += fmt::format("  return {}([&]([[maybe_unused]] Thread& thread) -> CUresult {{\n{}", enter, checks);
    if (row.onWire() && !row.byClauses) out += send();
    auto result = row.find("returns");
    return out + fmt::format("{}{}    return {};\n  }});\n}}\n\n", returns, counts,
                             result.empty() ? "CUDA_SUCCESS" : joined(result[0], 1));
  }

 private:
  // Of a graph's nodes, whose number is behind a pointer: `nodes[numNodes] = hNode.before`, `nodes[numNodes] edgeData = …`.
  bool isList(const Clause& clause) const {
    const Parameter* length = row.findParameter(bracketed(clause[0]));
    return length != nullptr && length->isPointer();
  }

  // Whether answerList() checks the parameter.
  bool isOfList(const std::string& parameter) const {
    return std::ranges::any_of(row.clauses, [&](auto& clause) {
      return isList(clause) &&
             (parameter == unbracketed(clause[0]) || parameter == bracketed(clause[0]) || parameter == clause[1]);
    });
  }

  // The field of a frame that a parameter goes into: of its name, or of the one that `P as FIELD` says.
  const Field* findField(const Parameter& p) const {
    for (auto& clause : row.find(p.name))
      if (clause[1] == "as") {
        const Field* field = row.frame.find(clause.at(2));
        KJ_REQUIRE(field != nullptr, "the frame has no such field", clause[2].c_str());
        return field;
      }
    return row.frame.find(p.name);
  }

  // Of a handle it comes before the object that it names.
  static bool isOfNull(const Clause& clause) { return clause.size() >= 3 && clause[1] == "differs" && clause[2] == "nullptr"; }

  void readParameter(const Parameter& p) {
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

  std::string resultOf(const Field& field, const std::string& type) const {
    return fmt::format("{}.results<api::Cuda::{}Results>().get{}{}()", row.find("cached").empty() ? "frame" : "reply",
                       row.typeName(), field.accessor(), field.type == Type::structure ? "<" + type + ">" : "");
  }

  static std::string numberOf(const Field& field, const std::string& value) {
    return fmt::format("static_cast<{}>({})", infoOf(field.type).cpp, value);
  }

  static std::string nullCheck(const std::string& name) {
    return fmt::format("    if ({} == nullptr) return CUDA_ERROR_INVALID_VALUE;\n", name);
  }

  // Text, a structure or an array that the frame carries.
  void pack(const Parameter& p, const Field& field) {
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
      // A list of a FRAME has as many elements as the `reads` clause of its parameter says.
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

  // What a frame has no room for, by further calls of the entry.
  std::string split(const Clause& clause) const {
    const std::string list = unbracketed(clause.at(1)), count = bracketed(clause[1]), most = clause.at(2);
    KJ_REQUIRE(row.findParameter(list) != nullptr && row.findParameter(count) != nullptr, "the entry has no such parameter",
               clause[1].c_str());
    auto argument = [&](auto& p) { return p.name == count ? most : p.name; };
    return fmt::format("  for (; {0} > {1}; {2} += {1}, {0} -= {1})\n    if (CUresult error = {3}({4})) return error;\n", count, most, list,
                       row.symbol, joined(row.parameters, ", ", argument));
  }

  // An array that the entry writes, with room for as many elements as another parameter says.
  void takeList(const Parameter& p, const Field& result) {
    const Parameter* count = row.findParameter(result.count);
    const bool isRoomKnown = count != nullptr && count->isPointer();
    if (!isRoomKnown && !isNamed(row, "optional", p.name))
      checks += fmt::format("    if ({} == nullptr && {} != 0) return CUDA_ERROR_INVALID_VALUE;\n", p.name, result.count);
    returns += fmt::format("    answerList({}, {}{}, {}, {});\n", p.name, isRoomKnown ? "*" : "", result.count,
                           result.elementType == "void" ? 1 : table.types.bytesOf(result.elementType), resultOf(result, ""));
  }

  // How many elements arrays have room for, and then how many there are: of an array only if one is given.
  void takeRoom(const Parameter& p, const Field& field) {
    std::string lists;
    for (auto& result : row.results.fields)
      if (result.count == p.name) lists += fmt::format("{}{} != nullptr", lists.empty() ? "" : " || ", result.name);
    put(field, fmt::format("{} ? *{} : 0", lists, p.name));
    counts += fmt::format("    answerCount({}, {}, {});\n", p.name, lists, resultOf(*row.results.find(p.name), ""));
  }

  // A value that the header has, unless a clause says which.
  void checkEnumeration(const Parameter& p) {
    if (auto values = checkedValuesOf(table, row, p))
      checks += fmt::format("    if (!({})) return {};\n", isAmong(p.name, values->values), values->error);
  }

  void put(const Field& field, const std::string& value) {
    sets += fmt::format("    frame->set{}({});\n", field.accessor(), value);
  }

  // Calls `each` with what is remembered of an object, and as which member.
  template <typename Each>
  void remember(Each&& each) const {
    for (auto& clause : row.find("remember"))
      for (size_t i = 1; i < clause.size(); ++i)
        if (clause[i] != "as" && clause[i - 1] != "as")
          each(clause[i + 2 < clause.size() && clause[i + 1] == "as" ? i + 2 : i], clause[i]);
  }

  void create(const Parameter& p, const Field& field) {
    checks += nullCheck(p.name);
    const Kind& kind = *table.findKind(field.kind);
    remember([&](auto& member, auto& value) {
      if (member != kind.spareBy) return;
      remembers += fmt::format("    if (uint64_t spare = thread.session.{}.take(thread, {}))\n      return *{} = fromWire<{}>(spare), CUDA_SUCCESS;\n",
                               kind.spares, value, p.name, p.pointee());
    });
    remembers += fmt::format("    NewHandle {}Made(thread, {});\n", p.name, kindOf(field.kind));
    remember([&](auto& member, auto& value) {
      remembers += fmt::format("    thread.session.handles.find<{}>({}Made.get())->{} = {};\n", kindOf(field.kind), p.name, member, value);
    });
    put(field, p.name + "Made.get()");
    returns += fmt::format("    *{0} = fromWire<{1}>({0}Made.keep());\n", p.name, p.pointee());
  }

  void resolve(const Parameter& p, const Kind& kind, const Field* field) {
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

  // In a stream that captures, all that is valid becomes a node.
  void capture(const Clause& clause) {
    auto stream = std::ranges::find(row.parameters, "CUstream", &Parameter::type);
    KJ_REQUIRE(stream != row.parameters.end(), "what is captured has a stream", row.symbol.c_str());
    checks += fmt::format(
        "    if (thread.session.captures.isActive()) [[unlikely]]\n"
        "      if (auto captured = thread.session.captures.add(thread, {}Handle, [&](NodeWork& work) {{ return {}; }}))\n"
        "        return *captured;\n",
        stream->name, joined(clause, 1));
  }

  // Whether an answer is taken from what is remembered of `object`, which ends with a dot.
  bool uses(const std::string& object) const {
    return std::ranges::any_of(row.clauses, [&](auto& clause) {
      return clause[0].starts_with(object) || (clause.size() >= 3 && clause[2].starts_with(object));
    });
  }

  // `flags mask A|B`, `config in A..B`, `flags is 0`, each with `else ERROR`; `priority clamp LOW HIGH`. What is checked, the
  // subject, may be a member of what `p` names.
  void checkValue(const Parameter& p, const Clause& clause) {
    static const std::map<std::string, const char*> statements = {
        {"mask", "if (({subject} & ~static_cast<{type}>({value})) != 0) return {error};"},
        {"has", "if (({subject} & ({value})) == 0) return {error};"},
        {"below", "if ({subject} >= {value}) return {error};"},
        {"is", "if ({subject} != {value}) return {error};"},
        {"differs", "if ({subject} == {value}) return {error};"},
        {"differs \"\"", "if ({name} == nullptr || *{name} == 0) return {error};"},
        {"in", "if ({subject} < {value} || {subject} > {high}) return {error};"},
        {"among", "if ({allDiffer}) return {error};"},
        {"owns", "if (!ownsMemory(thread.session, {subject}, {value})) return {error};"},
        {"found", "auto {name}Found = {value}(thread, toWire({name}));\n    if (!{name}Found) return {error};"},
        {"passes", "if (CUresult refused = {value}) return refused;"},
        {"clamp", "{name} = std::clamp({name}, {value}, {high});"}};
    if (clause[1] == "=" || clause[1] == "valid" || clause[1] == "from" || clause[1] == "as") return;
    KJ_REQUIRE(clause.size() >= 3, "a parameter's clause has a verb and a value", p.name.c_str());
    const std::string subject = translated(clause[0]);
    std::string value = translated(clause[2]), high = clause.size() > 3 ? translated(clause[3]) : "";
    size_t dots = clause[2].find("..");
    if (clause[1] == "in" && dots != std::string::npos) {
      value = clause[2].substr(0, dots);
      high = translated(clause[2].substr(dots + 2));
    }
    auto statement = statements.find(clause[2] == "\"\"" ? "differs \"\"" : clause[1]);
    KJ_REQUIRE(statement != statements.end() && (clause[1] != "in" || dots != std::string::npos),
               "a parameter's clause is valid, mask, has, in, among, below, is, differs, owns, clamp, found, passes, as or =",
               clause[1].c_str());
    std::span values(clause.begin() + 2, std::ranges::find(clause, "else"));
    std::string allDiffer = joined(values, " && ", [&](auto& each) { return fmt::format("{} != {}", subject, each); });
    checks +=
        fmt::format(fmt::runtime(fmt::format("    {}\n", statement->second)), fmt::arg("name", p.name), fmt::arg("type", p.type),
                    fmt::arg("subject", subject), fmt::arg("value", value), fmt::arg("high", high),
                    fmt::arg("allDiffer", allDiffer), fmt::arg("error", wordBehind(clause, "else", invalidValue)));
  }

  // `flags = hStream.flags`, `name[len] = dev.name`, `nodes[numNodes] edgeData = hNode.before`, `hfunc from findFunction(thread,
  // name)`.
  void readAnswer(const Clause& clause) {
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

  void list(const Clause& clause) {
    std::string edges = clause[1] == "=" ? "" : ", " + clause[1];
    returns += fmt::format("    if (CUresult bad = answerList({}, {{{}, {}{}}})) return bad;\n", translated(clause.back()),
                           unbracketed(clause[0]), bracketed(clause[0]), edges);
  }

  // What a function reports by its last argument, a handle or an address.
  void giveReported(const Parameter& p, const Clause& clause) {
    std::string call = translated(joined(clause, 2));
    returns += fmt::format("    uint64_t {0}Value = 0;\n    if (CUresult error = {1}, {0}Value)) return error;\n", p.name,
                           call.substr(0, call.size() - 1));
    give(p, p.name + "Value");
  }

  void give(const Parameter& p, const std::string& value) {
    std::string statement = fmt::format("answer({}, {});", p.name, value);
    returns += isNamed(row, "optional", p.name) ? fmt::format("    if ({} != nullptr) {}\n", p.name, statement)
                                                : fmt::format("    {}\n", statement);
  }

  // Whether it names what a function finds: `ptr found findPointer`.
  bool isFound(const std::string& parameter) const {
    return std::ranges::any_of(row.find(parameter), [](auto& clause) { return clause[1] == "found"; });
  }

  // `otherwise`: what a null object answers.
  std::string translated(const std::string& source, const std::string& otherwise = "0") const {
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
    KJ_REQUIRE(kind != nullptr, "what is remembered belongs to an object or a device", source.c_str());
    std::string member = fmt::format("{}Entry->{}", object, rest);
    if (!kind->nullable) return member;
    return fmt::format("valueOr({0}Entry, [](auto& entry) {{ return toWire(valueOf(entry.{1})); }}, {2})", object, rest,
                       otherwise);
  }

  std::string send() {
    auto cached = row.find("cached");
    std::string out = remembers + (cached.empty() ? "" : lookUp(cached[0]));
    if (!dataWords.empty())
      out += fmt::format("    const uint64_t words = 0{};\n    if (words > mostDataWords) return CUDA_ERROR_OUT_OF_MEMORY;\n",
                         dataWords);
    std::string call = fmt::format("    Call<api::Cuda::{}Params> frame({}, api::Method::{}{});\n{}", row.typeName(), target, row.name,
                                   dataWords.empty() ? "" : ", words", sets);
    call += fmt::format("    if (CUresult error = frame.{}()) return error;\n", row.route == Route::post ? "post" : "call");
    out += cached.empty() ? call : fmt::format("    if (!reply.isKnown()) {{\n{}    reply.keep(frame.replyWords());\n    }}\n", call);
    if (isNamed(row, "renews", "functions")) out += "    ++thread.session.functionChanges[frame.device()];\n";
    if (isNamed(row, "renews", "device")) out += "    thread.session.deviceReplies[frame.device()].forget();\n";
    return out;
  }

  // The reply may be known. A question's parts are numbers, if they are few, else digests.
  std::string lookUp(const Clause& cached) {
    std::string replies = fmt::format("thread.session.deviceReplies[Target({}).device]", target), parts, added;
    if (cached[1] != "device") replies = cached[1] + "Entry->replies()";
    size_t numbers = 0;
    bool onlyNumbers = true;
    for (auto& field : row.frame.fields) {
      if (field.name == cached[1]) continue;
      const Parameter* p = row.findParameter(field.name);
      KJ_REQUIRE(p != nullptr, "what a remembered reply depends on is a parameter", field.name.c_str());
      const bool isObject = table.findKindOfType(p->type) != nullptr;
      const std::string part = !field.isNumber() ? field.name + "Data.get()"
                                                 : fmt::format("static_cast<uint64_t>({})", isObject ? field.name + "Handle"
                                                                                                     : "toWire(" + field.name + ")");
      onlyNumbers &= field.isNumber();
      ++numbers;
      parts += part + ", ";
      added += fmt::format(".add({})", part);
    }
    const std::string question = onlyNumbers && numbers <= 2
                                     ? fmt::format("KnownReplies::Question{{api::Method::{}, {{{}}}}}", row.name, parts)
                                     : fmt::format("KnownReplies::Asked(api::Method::{}){}", row.name, added);
    return fmt::format("    Reply reply({}, {}{});\n", replies, question,
                       cached.size() > 4 ? fmt::format(", {} == {}", cached[3], cached[4]) : "");
  }

  static constexpr const char* invalidValue = "CUDA_ERROR_INVALID_VALUE";

  const Table& table;
  const Row& row;
  std::string checks, remembers, sets, returns, counts;
  std::string dataWords;          // of the frame's lists: terms of a sum
  std::string target = "thread";  // the device of the first object executes the frame, or the one that is asked about
  bool isOfObject = false;
};

}  // namespace

std::string emitClient(const Table& table) {
  std::string out = fmt::format(
      "{}#define __CUDA_API_VERSION_INTERNAL  // every version under its own name\n"
      "#include <cuda.h>\n#include <cudaProfiler.h>\n\n#include <algorithm>\n#include <cstring>\n\n#include "
      "\"cuda-described.h\"\n#include "
      "\"intercept/driver/answer.h\"\n#include \"intercept/driver/first-versions.h\"\n#include "
      "\"intercept/driver/names.h\"\n#include \"intercept/driver/next-launch.h\"\n#include \"intercept/driver/shared.h\"\n"
      "#include \"intercept/session/entry.h\"\n#include \"intercept/session/packed.h\"\n\n"
      "using namespace vgpu;\nusing namespace vgpu::client;\n\n",
      banner);
  for (auto& row : table.rows) {
    KJ_CONTEXT("the table's line", row.line, row.symbol.c_str());
    if (row.clientGenerated()) out += ClientHalf(table, row).emit();
  }
  return out;
}

}  // namespace vgpu::generator
