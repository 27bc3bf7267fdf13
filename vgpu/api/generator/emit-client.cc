// Emits the client half of every row whose half is not hand-written.
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>

#include "client-half.h"

namespace vgpu::generator {

std::string ClientHalf::emit() {
  auto declaration = [](auto& p) { return fmt::format("[[maybe_unused]] {} {}", p.type, p.name); };
  std::string out = fmt::format("extern \"C\" VGPU_EXPORT CUresult CUDAAPI {}({}) {{\n", row.symbol,
                                joined(row.parameters, ", ", declaration));
  if (!row.alias.empty()) {
    for (auto& p : row.parameters)
      for (auto& clause : row.find(p.name)) checkValue(p, clause);
    const bool isEntry = row.alias.starts_with("cu");  // that entry notes its own failure
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

void ClientHalf::capture(const Clause& clause) {
  auto stream = std::ranges::find(row.parameters, "CUstream", &Parameter::type);
  KJ_REQUIRE(stream != row.parameters.end(), "a captured call needs a stream", row.symbol.c_str());
  checks += fmt::format(
      "    if (thread.session.captures.isActive()) [[unlikely]]\n"
      "      if (auto captured = thread.session.captures.add(thread, {}Handle, [&](NodeWork& work) {{ return {}; }}))\n"
      "        return *captured;\n",
      stream->name, joined(clause, 1));
}

std::string ClientHalf::split(const Clause& clause) const {
  const std::string list = unbracketed(clause.at(1)), count = bracketed(clause[1]), most = clause.at(2);
  KJ_REQUIRE(row.findParameter(list) != nullptr && row.findParameter(count) != nullptr, "the entry has no such parameter",
             clause[1].c_str());
  auto argument = [&](auto& p) { return p.name == count ? most : p.name; };
  return fmt::format("  for (; {0} > {1}; {2} += {1}, {0} -= {1})\n    if (CUresult error = {3}({4})) return error;\n", count, most, list,
                     row.symbol, joined(row.parameters, ", ", argument));
}

std::string ClientHalf::send() {
  auto cached = row.find("cached");
  std::string out = remembers + (cached.empty() ? "" : lookUp(cached[0]));
  if (!dataWords.empty())
    out += fmt::format("    const uint64_t words = 0{};\n    if (words > mostDataWords) return CUDA_ERROR_OUT_OF_MEMORY;\n",
                       dataWords);
  std::string call = fmt::format("    Call<api::Cuda::{}Params> frame({}, api::Method::{}{});\n{}", row.typeName(), target, row.name,
                                 dataWords.empty() ? "" : ", words", sets);
  call += fmt::format("    if (CUresult error = frame.{}()) return error;\n", row.route == Route::post ? "post" : "call");
  out += cached.empty() ? call : fmt::format("    if (!reply.isKnown()) {{\n{}    reply.keep(frame.replyWords());\n    }}\n", call);
  if (isNamed(row, "renews", "device")) out += "    thread.session.deviceReplies[frame.device()].forget();\n";
  return out;
}

std::string ClientHalf::lookUp(const Clause& cached) {
  std::string replies = fmt::format("thread.session.deviceReplies[Target({}).device]", target), parts, added;
  if (cached[1] != "device") replies = cached[1] + "Entry->replies()";
  size_t numbers = 0;
  bool onlyNumbers = true;
  for (auto& field : row.frame.fields) {
    if (field.name == cached[1]) continue;
    const Parameter* p = row.findParameter(field.name);
    KJ_REQUIRE(p != nullptr, "a remembered reply can depend only on parameters", field.name.c_str());
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
