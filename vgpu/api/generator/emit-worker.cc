// The worker's half of a row: virtual handles become real ones, the driver is called, what it made is kept.
#include <fmt/format.h>

#include "table.h"

namespace vgpu::generator {

namespace {

std::string declarationOf(const Row& row) {
  return fmt::format(
      "CUresult {}(Execution& on, [[maybe_unused]] const api::FrameReader<api::Cuda::{}Params>& p, [[maybe_unused]] Reply& "
      "reply)",
      row.name, row.typeName());
}

std::string workerHalf(const Row& row) {
  std::string before, arguments, after, results;
  for (auto& p : row.parameters) {
    const Field* field = row.frame.find(p.name);
    const Field* result = row.results.find(p.name);
    std::string argument;
    if (result != nullptr || field->effect == Effect::creates) {
      before += fmt::format("  {} {}{{}};\n", p.pointee(), p.name);
      argument = "&" + p.name;
      if (result != nullptr) {
        results += fmt::format("  results.set{}(toWire({}));\n", result->accessor, p.name);
      } else {
        after += fmt::format("  on.handles.add({}, p.get{}(), toWire({}));\n", kindOf(field->kind), field->accessor, p.name);
      }
    } else if (field->kind == "stream" && field->effect == Effect::uses && !row.noWork) {
      argument = fmt::format("on.stream(p.get{}())", field->accessor);
    } else if (field->effect != Effect::none) {
      argument = fmt::format("fromWire<{}>(on.handles.{}({}, p.get{}()))", p.type, field->nullable ? "getOrNull" : "get",
                             kindOf(field->kind), field->accessor);
      if (field->effect == Effect::destroys)
        after += fmt::format("  on.handles.remove({}, p.get{}());\n", kindOf(field->kind), field->accessor);
    } else {
      argument = fmt::format("fromWire<{}>(p.get{}())", p.type, field->accessor);
    }
    arguments += (arguments.empty() ? "" : ", ") + argument;
    for (auto& clause : row.find(p.name))
      if (clause[1] == "owns")
        before +=
            fmt::format("  if (!on.ownsMemory(p.get{}(), {})) return CUDA_ERROR_INVALID_VALUE;\n", field->accessor, clause[2]);
  }
  if (!results.empty()) after += fmt::format("  auto results = reply.init<api::Cuda::{}Results>();\n", row.typeName()) + results;
  return fmt::format("{} {{\n{}  if (CUresult error = on.driver.{}({})) return error;\n{}  return CUDA_SUCCESS;\n}}\n\n",
                     declarationOf(row), before, row.symbol, arguments, after);
}

}  // namespace

std::string emitHandlers(const Table& table) {
  std::string out = fmt::format(
      "{}#pragma once\n\n#include \"cuda-frames.h\"\n#include \"stub/worker/execution.h\"\n\nnamespace vgpu::stub {{\n\n",
      banner);
  for (auto& row : table.rows)
    if (row.onWire() && !row.workerGenerated() && row.sameAs.empty())
      out += fmt::format("// By hand: {}.\n{};\n", row.workerByHand, declarationOf(row));
  return out + "\n}  // namespace vgpu::stub\n";
}

std::string emitDispatch(const Table& table) {
  std::string out = fmt::format(
      "{}#include \"stub/worker/dispatch.h\"\n\n#include \"cuda-handlers.h\"\n\nnamespace vgpu::stub {{\n\nnamespace generated "
      "{{\n\n",
      banner);
  for (auto& row : table.rows)
    if (row.workerGenerated()) out += workerHalf(row);
  out += "}  // namespace generated\n\n";
  out +=
      "CUresult dispatch(Execution& on, api::Method method, kj::ArrayPtr<const capnp::word> words, Reply& reply) {\n  switch "
      "(method) {\n";
  for (auto* row : table.frames)
    if (row != nullptr)
      out += fmt::format("    case api::Method::{0}: return {2}{3}(on, api::FrameReader<api::Cuda::{1}Params>(words), reply);\n",
                         row->name, row->typeName(), row->workerGenerated() ? "generated::" : "", row->halfName());
  out += "    default: return refuse(method);\n  }\n}\n\n";
  out += "CUresult destroyReal(const Driver& driver, api::Kind kind, uint64_t real) {\n  switch (kind) {\n";
  for (auto& kind : table.kinds)
    if (!kind.destroyer.empty())
      out += fmt::format("    case {}: return driver.{}(fromWire<{}>(real));\n", kindOf(kind.name), kind.destroyer, kind.type);
  return out + "    default: return CUDA_SUCCESS;\n  }\n}\n\n}  // namespace vgpu::stub\n";
}

std::string emitDriver(const Table& table) {
  std::string out = fmt::format("{}// DRIVER(symbol): what the generated dispatch calls.\n", banner);
  for (auto& row : table.rows)
    if (row.workerGenerated()) out += fmt::format("DRIVER({})\n", row.symbol);
  return out;
}

}  // namespace vgpu::generator
