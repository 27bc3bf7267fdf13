// The two halves of a generated row: the entry in the program, and the call in the worker.
#include <fmt/format.h>

#include "model.h"

namespace vgpu::generator {

namespace {

constexpr const char* banner = "// Generated from vgpu/api/cuda.capnp. Do not edit.\n";

std::string kindName(const std::string& kind) { return "api::Kind::" + enumerantOf(kind); }

std::string pointee(const CParameter& parameter) {
  return parameter.type.substr(0, parameter.type.find_last_not_of(" *") + 1);
}

std::string cList(const Method& m) {
  std::string out;
  for (auto& p : m.signature) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", p.type, p.name);
  return out;
}

// Client: checks, one statement a parameter; then the frame; then what comes back.
std::string clientEntry(const Method& m) {
  std::string checks, sets, returns, target = "thread";  // whose device is that of the first object
  for (auto& p : m.signature) {
    const Field* parameter = m.findParameter(p.name);
    const Field* result = m.findResult(p.name);
    if (result != nullptr) {
      checks += fmt::format("    if ({} == nullptr) return CUDA_ERROR_INVALID_VALUE;\n", p.name);
      returns += fmt::format("    *{} = fromWire<{}>(frame.results<api::Cuda::{}Results>().get{}());\n", p.name, pointee(p),
                             m.typeName, result->accessor);
    } else if (parameter->effect == Effect::creates) {
      checks += fmt::format("    if ({} == nullptr) return CUDA_ERROR_INVALID_VALUE;\n", p.name);
      checks += fmt::format("    uint64_t {}Handle = thread.create({});\n", p.name, kindName(parameter->kind));
      sets += fmt::format("    frame->set{}({}Handle);\n", parameter->accessor, p.name);
      returns += fmt::format("    *{} = fromWire<{}>({}Handle);\n", p.name, pointee(p), p.name);
    } else if (parameter->effect != Effect::none) {
      checks += fmt::format("    uint64_t {0}Handle = toWire({0});\n"
                            "    if (CUresult bad = thread.resolve({1}, {2}, {0}Handle)) return bad;\n",
                            p.name, kindName(parameter->kind), parameter->nullable);
      if (target == "thread") target = fmt::format("thread.of({}Handle)", p.name);
      sets += fmt::format("    frame->set{}({}Handle);\n", parameter->accessor, p.name);
      if (parameter->kind == "stream" && !m.noWork) sets += fmt::format("    frame.inStream({}Handle);\n", p.name);
      if (parameter->effect == Effect::destroys)
        returns += fmt::format("    thread.destroy({}, {}Handle);\n", kindName(parameter->kind), p.name);
      if (parameter->effect == Effect::changes)
        returns += fmt::format("    thread.changed({}, {}Handle);\n", kindName(parameter->kind), p.name);
    } else {
      sets += fmt::format("    frame->set{}(static_cast<{}>(toWire({})));\n", parameter->accessor, parameter->type, p.name);
    }
  }
  std::string send = m.route == api::Route::POST ? "post" : "call";
  std::string out = fmt::format("extern \"C\" VGPU_EXPORT CUresult CUDAAPI {}({}) {{\n", m.entry, cList(m));
  out += "  return enter([&](Thread& thread) -> CUresult {\n" + checks;
  out += fmt::format("    Call<api::Cuda::{}Params> frame({}, api::Method::{});\n", m.typeName, target, m.name) + sets;
  out += fmt::format("    if (CUresult error = frame.{}()) return error;\n", send) + returns;
  return out + "    return CUDA_SUCCESS;\n  });\n}\n\n";
}

// Worker: virtual handles become real ones, the driver is called, what it made is kept.
std::string workerCall(const Method& m) {
  std::string before, arguments, after;
  for (auto& p : m.signature) {
    const Field* parameter = m.findParameter(p.name);
    const Field* result = m.findResult(p.name);
    std::string argument;
    if (result != nullptr) {
      before += fmt::format("  {} {}{{}};\n", pointee(p), p.name);
      argument = "&" + p.name;
      after += fmt::format("  reply.init<api::Cuda::{}Results>().set{}(static_cast<{}>(toWire({})));\n", m.typeName,
                           result->accessor, result->type, p.name);
    } else if (parameter->effect == Effect::creates) {
      before += fmt::format("  {} {}{{}};\n", pointee(p), p.name);
      argument = "&" + p.name;
      after += fmt::format("  on.handles.add({}, p.get{}(), toWire({}));\n", kindName(parameter->kind), parameter->accessor,
                           p.name);
    } else if (parameter->effect != Effect::none) {
      argument = fmt::format("fromWire<{}>(on.handles.{}({}, p.get{}()))", p.type,
                             parameter->nullable ? "getOrNull" : "get", kindName(parameter->kind), parameter->accessor);
      if (parameter->effect == Effect::destroys)
        after += fmt::format("  on.handles.remove({}, p.get{}());\n", kindName(parameter->kind), parameter->accessor);
    } else {
      argument = fmt::format("fromWire<{}>(p.get{}())", p.type, parameter->accessor);
    }
    arguments += (arguments.empty() ? "" : ", ") + argument;
  }
  std::string out = fmt::format("CUresult {0}(Execution& on, [[maybe_unused]] const api::FrameReader<api::Cuda::{1}Params>& p, "
                                "[[maybe_unused]] Reply& reply) {{\n", m.name, m.typeName);
  out += before;
  out += fmt::format("  if (CUresult error = on.driver.{}({})) return error;\n", m.driver, arguments) + after;
  return out + "  return CUDA_SUCCESS;\n}\n\n";
}

std::string flatBuilder(const Method& m) {
  std::string out = fmt::format("template <>\nclass FrameBuilder<Cuda::{0}Params> : public FlatFrame<{1}, {2}> {{\n public:\n"
                                "  using FlatFrame<{1}, {2}>::FlatFrame;\n", m.typeName, m.dataWords, m.pointers);
  for (auto& f : m.parameters) {
    if (f.isData) {
      out += fmt::format("  kj::ArrayPtr<kj::byte> init{0}(uint32_t size) {{ return placeData(size); }}\n"
                         "  void set{0}(kj::ArrayPtr<const kj::byte> data) {{ copyData(data); }}\n", f.accessor);
    } else {
      out += fmt::format("  void set{}({} value) {{ {}({}, value); }}\n", f.accessor, f.type,
                         f.type == "bool" ? "setBit" : "set", f.place);
    }
  }
  return out + "};\n\n";
}

std::string flatReader(const Method& m) {
  std::string out = fmt::format("template <>\nclass FrameReader<Cuda::{}Params> : public FlatReader {{\n public:\n"
                                "  using FlatReader::FlatReader;\n", m.typeName);
  for (auto& f : m.parameters) {
    if (f.isData) {
      out += fmt::format("  kj::ArrayPtr<const kj::byte> get{}() const {{ return readData(); }}\n", f.accessor);
    } else {
      std::string get = f.type == "bool" ? "getBit" : fmt::format("get<{}>", f.type);
      out += fmt::format("  {} get{}() const {{ return {}({}); }}\n", f.type, f.accessor, get, f.place);
    }
  }
  return out + "};\n\n";
}

}  // namespace

std::string emitFrames(const std::vector<Method>& methods) {
  std::string out = banner;
  out += "#pragma once\n\n#include \"vgpu/api/cuda.capnp.h\"\n#include \"vgpu/api/flat-frame.h\"\n\nnamespace vgpu::api {\n\n";
  for (auto& m : methods)
    if (m.onWire() && m.isFlat()) out += flatBuilder(m) + flatReader(m);
  return out + "}  // namespace vgpu::api\n";
}

std::string emitClient(const std::vector<Method>& methods) {
  std::string out = banner;
  out += "#include \"intercept/session/entry.h\"\n\nusing namespace vgpu;\nusing namespace vgpu::client;\n\n";
  for (auto& m : methods)
    if (m.clientGenerated()) out += clientEntry(m);
  return out;
}

std::string emitHandlers(const std::vector<Method>& methods) {
  std::string out = banner;
  out += "#pragma once\n\n#include \"cuda-frames.h\"\n#include \"stub/worker/execution.h\"\n\nnamespace vgpu::stub {\n\n";
  for (auto& m : methods) {
    if (!m.onWire() || m.workerGenerated()) continue;
    out += fmt::format("// By hand: {}.\nCUresult {}(Execution& on, const api::FrameReader<api::Cuda::{}Params>& p, Reply& reply);\n",
                       m.workerByHand, m.name, m.typeName);
  }
  return out + "\n}  // namespace vgpu::stub\n";
}

std::string emitDispatch(const std::vector<Method>& methods) {
  std::string out = banner;
  out += "#include \"stub/worker/dispatch.h\"\n#include \"cuda-handlers.h\"\n\nnamespace vgpu::stub {\n\nnamespace generated {\n\n";
  for (auto& m : methods)
    if (m.workerGenerated()) out += workerCall(m);
  out += "}  // namespace generated\n\n";
  out += "CUresult dispatch(Execution& on, api::Method method, kj::ArrayPtr<const capnp::word> words, Reply& reply) {\n";
  out += "  switch (method) {\n";
  for (auto& m : methods) {
    if (!m.onWire()) continue;
    out += fmt::format("    case api::Method::{0}: return {2}{0}(on, api::FrameReader<api::Cuda::{1}Params>(words), reply);\n",
                       m.name, m.typeName, m.workerGenerated() ? "generated::" : "");
  }
  out += "    default: return refuse(method);\n  }\n}\n\n}  // namespace vgpu::stub\n";
  return out;
}

}  // namespace vgpu::generator
