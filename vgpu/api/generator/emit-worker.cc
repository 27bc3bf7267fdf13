// Emits the worker half of a row: translates virtual handles to real ones, calls the driver, and keeps what it made.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "text.h"

namespace vgpu::generator {

namespace {

std::string declarationOf(const Row& row) {
  return fmt::format(
      "CUresult {}(Execution& on, [[maybe_unused]] const api::FrameReader<api::Cuda::{}Params>& p, [[maybe_unused]] Reply& "
      "reply)",
      row.name, row.typeName());
}

class WorkerHalf {
 public:
  WorkerHalf(const Table& table, const Row& row) : table(table), row(row) {}

  std::string emit() {
    const std::string arguments = joined(row.parameters, ", ", [&](auto& p) {
      std::string argument = argumentOf(p);
      for (auto& clause : row.find(p.name))
        if (clause[1] == "owns")
          before += fmt::format("  if (!on.ownsMemory({}, {})) return CUDA_ERROR_INVALID_VALUE;\n", read(p.name), clause[2]);
      return argument;
    });
    if (!results.empty())
      after += fmt::format("  auto results = reply.init<api::Cuda::{}Results>();\n", row.typeName()) + results;
    return fmt::format("{} {{\n{}  if (CUresult error = on.driver.{}({})) return error;\n{}  return CUDA_SUCCESS;\n}}\n\n",
                       declarationOf(row), before, row.symbol, arguments, after);
  }

 private:
  // The argument for the driver; adds what must happen before and after the call.
  std::string argumentOf(const Parameter& p) {
    const Field* field = row.frame.find(p.name);
    const Field* result = row.results.find(p.name);
    if (result != nullptr) return resultOf(p, *result, field);
    if (field->type == Type::text) return textOf(*field);
    if (!field->isNumber()) return listOf(p, *field);
    if (field->effect == Effect::creates) {
      before += fmt::format("  {} {}{{}};\n", p.pointee(), p.name);
      after += fmt::format("  on.handles.add({}, p.get{}(), toWire({}));\n", kindOf(field->kind), field->accessor(), p.name);
      if (auto parent = std::ranges::find(row.frame.fields, true, &Field::parent); parent != row.frame.fields.end())
        after += fmt::format("  on.handles.endWith(p.get{}(), {}, p.get{}());\n", parent->accessor(), kindOf(field->kind), field->accessor());
      return fmt::format("&{}", p.name);
    }
    if (field->kind == "stream" && field->effect == Effect::uses && !row.noWork)
      return fmt::format("on.stream(p.get{}())", field->accessor());
    // A session's device, which the driver may know by another number.
    if (p.type == "CUdevice") return fmt::format("on.driver.device(static_cast<unsigned>(p.get{}()))", field->accessor());
    if (field->effect == Effect::none) {
      const std::string value = fmt::format("fromWire<{}>(p.get{}())", p.type, field->accessor());
      if (auto checked = checkedValuesOf(table, row, p))
        before += fmt::format("  if (!({})) return {};\n", isAmong(value, checked->values), checked->error);
      return value;
    }
    if (field->effect == Effect::destroys)
      after += fmt::format("  on.handles.remove({}, p.get{}());\n", kindOf(field->kind), field->accessor());
    return fmt::format("fromWire<{}>(on.real({}, p.get{}(), {}))", p.type, kindOf(field->kind), field->accessor(),
                       field->nullable);
  }

  std::string textOf(const Field& field) const {
    std::string text = fmt::format("p.get{}().cStr()", field.accessor());
    return field.optional ? fmt::format("(p.get{}().size() == 0 ? nullptr : {})", field.accessor(), text) : text;
  }

  // A structure or an array that the entry reads.
  std::string listOf(const Parameter& p, const Field& field) {
    std::string count = field.count.empty() ? "1" : read(field.count);
    before += fmt::format("  Unpacked {0}(on, {1}, p.get{2}());\n  if (CUresult bad = {0}.check({3}, {4})) return bad;\n", p.name,
                          describedOf(table, field), field.accessor(), count, field.optional);
    if (field.effect == Effect::destroys)
      after += fmt::format(
          "  for (size_t i = 0; i < {0}.count(); ++i) on.handles.remove({1}, api::ElementsReader<uint64_t>(p.get{2}())[i]);\n",
          p.name, kindOf(field.kind), field.accessor());
    return fmt::format("{}{}.{}<{}>()", p.isPointer() ? "" : "*", p.name, field.optional ? "get" : "list", field.elementType);
  }

  // A structure that the entry reads and writes.
  std::string updatedOf(const Parameter& p, const Field& result, const Field& given) {
    before += fmt::format(
        "  Unpacked {0}Given(on, {1}, p.get{2}());\n  if (CUresult bad = {0}Given.check(1)) return bad;\n"
        "  {3} {0};\n  std::memcpy(&{0}, {0}Given.get<void>(), sizeof {0});\n",
        p.name, describedOf(table, given), given.accessor(), p.pointee());
    results += fmt::format("  results.set{}({});\n", result.accessor(), p.name);
    return fmt::format("&{}", p.name);
  }

  // A field of the frame, `p.getCount()`, minus the number in a count such as COUNT-1.
  std::string read(const std::string& count) const {
    if (isNumber(count)) return count;
    std::string name = countParameter(count);
    return fmt::format("p.get{}(){}", row.frame.find(name)->accessor(), count.substr(name.size()));
  }

  // `room`: the field with the number of elements that the program's arrays can take; null for other results.
  std::string resultOf(const Parameter& p, const Field& result, const Field* room) {
    if (room != nullptr && room->type == Type::described) return updatedOf(p, result, *room);
    if (result.count.empty()) {
      before += fmt::format("  {} {}{};\n", p.pointee(), p.name, room == nullptr ? "{}" : " = " + read(p.name));
      results += fmt::format("  results.set{}({});\n", result.accessor(),
                             result.type == Type::structure ? p.name : fmt::format("toWire({})", p.name));
      return fmt::format("&{}", p.name);
    }
    const Parameter* count = row.findParameter(result.count);
    std::string element = result.elementType == "void" ? "kj::byte" : result.elementType;
    before += fmt::format("  Room<{0}> {1}({2});\n  if (CUresult bad = {1}.check()) return bad;\n", element, p.name,
                          read(result.count));
    results += fmt::format("  results.set{}({}.filled({}));\n", result.accessor(), p.name,
                           count != nullptr && count->isPointer() ? result.count : read(result.count));
    return p.name + ".get()";
  }

  const Table& table;
  const Row& row;
  std::string before, after, results;
};

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
      "{}#include \"stub/worker/dispatch.h\"\n\n#include <cstring>\n\n#include \"cuda-described.h\"\n#include "
      "\"cuda-handlers.h\"\n"
      "#include \"stub/worker/room.h\"\n#include \"stub/worker/unpacked.h\"\n\nnamespace vgpu::stub {{\n\nnamespace generated "
      "{{\n\n",
      banner);
  for (auto& row : table.rows)
    if (row.workerGenerated()) out += WorkerHalf(table, row).emit();
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

// The newest version of each entry, and the versions that halves of rows call. Leaves out entries that sessions refuse, which nothing
// calls, and one that is only another name in cuda.h.
std::string emitDriver(const Table& table) {
  std::string out = fmt::format("{}// DRIVER(symbol, whether every frame of some method calls it)\n", banner);
  std::map<std::string, const Row*> newest;
  for (auto& row : table.rows) {
    if (row.symbol.empty() || row.route == Route::forbid || entryOf(row.symbol) == "cuGraphInstantiate") continue;
    const Row*& known = newest[entryOf(row.symbol)];
    if (known == nullptr || row.symbol.size() > known->symbol.size() || row.symbol > known->symbol) known = &row;
  }
  for (auto& row : table.rows)
    if (!row.symbol.empty() && (row.workerGenerated() || newest[entryOf(row.symbol)] == &row))
      out += fmt::format("DRIVER({}, {})\n", row.symbol, row.onWire());
  return out;
}

}  // namespace vgpu::generator
