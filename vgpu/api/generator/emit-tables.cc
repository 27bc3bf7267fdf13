// Tables that both sides read: method numbers, effects on objects, exported entries, and the coverage page.
#include <fmt/format.h>

#include <algorithm>

#include "model.h"

namespace vgpu::generator {

namespace {

constexpr const char* banner = "// Generated from vgpu/api/cuda.capnp. Do not edit.\n";

const char* effectName(Effect effect) {
  switch (effect) {
    case Effect::creates: return "creates";
    case Effect::uses: return "uses";
    case Effect::changes: return "changes";
    case Effect::destroys: return "destroys";
    case Effect::none: break;
  }
  return "";
}

std::string quoted(const std::string& text) { return text.empty() ? "nullptr" : fmt::format("\"{}\"", text); }

}  // namespace

std::string emitMethodsHeader(const std::vector<Method>& methods) {
  std::string out = banner;
  out += "#pragma once\n\n#include <cstddef>\n#include <cstdint>\n\nnamespace vgpu::api {\n\n";
  out += "enum class Method : uint16_t {\n";
  for (auto& m : methods) out += fmt::format("  {} = {},\n", m.name, m.ordinal);
  out += fmt::format("}};\n\nconstexpr size_t methodCount = {};\n\n", methods.size());
  out += "// Words of a method's parameter struct, without what its pointers point to.\n";
  out += "constexpr uint16_t parameterWords(Method method) {\n  switch (method) {\n";
  for (auto& m : methods)
    if (m.onWire()) out += fmt::format("    case Method::{}: return {};\n", m.name, m.dataWords + m.pointers);
  out += "    default: return 0;\n  }\n}\n\n}  // namespace vgpu::api\n";
  return out;
}

std::string emitMethodsSource(const std::vector<Method>& methods) {
  std::string out = banner;
  out += "#include \"vgpu/api/effects.h\"\n#include \"vgpu/api/cuda.capnp.h\"\n\nnamespace vgpu::api {\n\n";
  out += "const MethodInfo methods[methodCount] = {\n";
  for (auto& m : methods) {
    out += fmt::format("  {{\"{}\", {}, {}, Route::{}, Replay::{}, {}}},\n", m.name, quoted(m.entry), m.since,
                       enumerantOf(routeName(m.route)), enumerantOf(replayName(m.replay)), m.noWork);
  }
  out += "};\n\nvoid visitEffects(Method method, capnp::MessageReader& frame, const EffectVisitor& visit) {\n";
  out += "  switch (method) {\n";
  for (auto& m : methods) {
    bool any = std::any_of(m.parameters.begin(), m.parameters.end(), [](auto& f) { return f.effect != Effect::none; });
    if (!any || !m.onWire()) continue;
    out += fmt::format("    case Method::{}: {{\n      auto p = frame.getRoot<Cuda::{}Params>();\n", m.name, m.typeName);
    for (auto& f : m.parameters) {
      if (f.effect == Effect::none) continue;
      out += fmt::format("      visit({{Effect::{}, Kind::{}, p.get{}(), {}, {}}});\n", effectName(f.effect),
                         enumerantOf(f.kind),
                         f.accessor, f.parent, f.nullable);
    }
    out += "      break;\n    }\n";
  }
  out += "    default: break;\n  }\n}\n\n}  // namespace vgpu::api\n";
  return out;
}

std::string emitEntryTable(const std::vector<Method>& methods) {
  std::string out = banner;
  out += "// ENTRY(symbol): what a session has.\n";
  for (auto& m : methods)
    if (!m.entry.empty()) out += fmt::format("ENTRY({})\n", m.entry);
  return out;
}

std::string emitDriverEntries(const std::vector<Method>& methods) {
  std::string out = banner;
  out += "// DRIVER(symbol): what the generated dispatch calls.\n";
  for (auto& m : methods)
    if (m.workerGenerated()) out += fmt::format("DRIVER({})\n", m.driver);
  return out;
}

std::string emitCoverage(const std::vector<Method>& methods) {
  std::string out = "# Driver entries\n\nGenerated from `vgpu/api/cuda.capnp`.\n\n";
  size_t byHand = 0, wire = 0;
  for (auto& m : methods) {
    wire += m.onWire();
    byHand += m.onWire() && !m.workerGenerated();
  }
  out += fmt::format("{} methods; {} cross the ring, of which {} have a worker's half written by hand.\n\n", methods.size(),
                     wire, byHand);
  out += "| # | entry | since | route | replay | by hand, because |\n|---|---|---|---|---|---|\n";
  for (auto& m : methods) {
    std::string why = m.reason;
    if (!m.clientByHand.empty()) why += (why.empty() ? "" : "; ") + fmt::format("client: {}", m.clientByHand);
    if (!m.workerByHand.empty()) why += (why.empty() ? "" : "; ") + fmt::format("worker: {}", m.workerByHand);
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", m.ordinal,
                       m.entry.empty() ? fmt::format("({})", m.name) : fmt::format("`{}`", m.entry),
                       m.since == 0 ? "" : fmt::format("{}.{}", m.since / 1000, m.since % 1000 / 10), routeName(m.route),
                       m.onWire() || m.replay == api::Replay::FORBID ? replayName(m.replay) : "", why);
  }
  return out;
}

}  // namespace vgpu::generator
