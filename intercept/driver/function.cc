// Functions of modules: looked up by name once; the driver is asked for their attributes once until they change.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "intercept/driver/names.h"
#include "intercept/session/entry.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

KnownReplies::Question attributeQuestion(CUfunction_attribute attribute) {
  return {api::Method::funcGetAttribute, {static_cast<uint32_t>(attribute)}};
}
constexpr KnownReplies::Question allAttributes{api::Method::funcAttributes};

// Keeps the driver's reply about a function's attributes.
template <typename Told>
void keepAttributes(KnownReplies& replies, uint64_t generation, Told reported) {
  for (unsigned i = 0; i < reported.getAttributes().size() && i < 64; ++i)
    if (reported.getKnown() >> i & 1)
      replies.keep(generation, attributeQuestion(static_cast<CUfunction_attribute>(i)),
                   static_cast<uint32_t>(reported.getAttributes()[i]));
  replies.keep(generation, allAttributes, 1);
}

// For a function that has changed since it was looked up.
CUresult askAttributes(Thread& thread, CUfunction function, KnownReplies& replies) {
  uint64_t generation = replies.generation();
  Call<api::Cuda::FuncAttributesParams> frame(thread.of(toWire(function)), api::Method::funcAttributes);
  frame->setFunction(toWire(function));
  if (CUresult error = frame.call()) return error;
  keepAttributes(replies, generation, frame.results<api::Cuda::FuncAttributesResults>());
  return CUDA_SUCCESS;
}

// Attributes that only the worker's driver can report: those that it does not support, or that we do not know.
CUresult askAttribute(Thread& thread, CUfunction function, CUfunction_attribute attribute, int& value) {
  Call<api::Cuda::FuncGetAttributeParams> frame(thread.of(toWire(function)), api::Method::funcGetAttribute);
  frame->setHfunc(toWire(function));
  frame->setAttrib(attribute);
  if (CUresult error = frame.call()) return error;
  value = frame.results<api::Cuda::FuncGetAttributeResults>().getPi();
  return CUDA_SUCCESS;
}

std::unique_ptr<FunctionLayout> layoutOf(Thread& thread, uint64_t module, const char* name,
                                         const api::FrameReader<api::Cuda::ModuleFunctionResults>& reported) {
  auto layout = std::make_unique<FunctionLayout>(thread.session.functionChanges[handleDevice(module)]);
  layout->module = module;
  layout->name = name;
  for (unsigned i = 0; i < reported.getOffsets().size() && i < reported.getSizes().size(); ++i) {
    layout->parameters.push_back({reported.getOffsets()[i], reported.getSizes()[i]});
    layout->parameterBytes = std::max(layout->parameterBytes, reported.getOffsets()[i] + reported.getSizes()[i]);
  }
  auto attribute = [&](CUfunction_attribute which) {
    return static_cast<unsigned>(which) < reported.getAttributes().size()
               ? static_cast<uint32_t>(reported.getAttributes()[static_cast<unsigned>(which)]) : 0;
  };
  layout->maxThreadsPerBlock = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  layout->staticSharedBytes = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  layout->maxDynamicSharedBytes = attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  keepAttributes(layout->replies, layout->replies.generation(), reported);
  return layout;
}

CUresult lookUp(Thread& thread, uint64_t module, const char* name, uint64_t& handle) {
  HandleTable& handles = thread.session.handles;
  uint64_t made = handles.reserve(api::Kind::FUNCTION, handleDevice(module));
  Call<api::Cuda::ModuleFunctionParams> frame(thread.of(module), api::Method::moduleFunction, dataWords(std::strlen(name) + 1));
  frame->setFunction(made);
  frame->setModule(module);
  frame->setName(name);
  if (CUresult error = frame.call()) {
    handles.abandon(made);
    return error;
  }
  handles.publish<api::Kind::FUNCTION>(made, 0, [&](FunctionState& state) {
    state.layout = layoutOf(thread, module, name, frame.results<api::Cuda::ModuleFunctionResults>());
  });
  handle = thread.session.functions.add(module, name, made);
  if (handle != made) handles.destroy(made);
  return CUDA_SUCCESS;
}

// The description of a live function. CUDA_ERROR_INVALID_HANDLE otherwise.
template <typename Body>
CUresult withFunction(CUfunction function, Body&& body) {
  return enterAny([&](Thread& thread) -> CUresult {
    auto* entry = thread.session.handles.find<api::Kind::FUNCTION>(toWire(function));
    if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return body(thread, *entry->layout);
  });
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t module = toWire(hmod);
    if (hfunc == nullptr || name == nullptr || *name == 0) return CUDA_ERROR_INVALID_VALUE;
    if (std::strlen(name) > maxNameBytes) return CUDA_ERROR_NOT_FOUND;
    if (CUresult bad = thread.resolve(api::Kind::MODULE, false, module)) return bad;
    uint64_t handle = thread.session.functions.find(module, std::string_view(name));
    if (handle == 0)
      if (CUresult error = lookUp(thread, module, name, handle)) return error;
    *hfunc = fromWire<CUfunction>(handle);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions, CUmodule mod) {
  std::vector<std::string> names;
  CUresult result = enter([&](Thread& thread) -> CUresult {
    uint64_t module = toWire(mod);
    if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = thread.resolve(api::Kind::MODULE, false, module)) return bad;
    Call<api::Cuda::ModuleFunctionNamesParams> frame(thread.of(module), api::Method::moduleFunctionNames);
    frame->setModule(module);
    if (CUresult error = frame.call()) return error;
    auto reported = frame.results<api::Cuda::ModuleFunctionNamesResults>().getNames().asChars();
    for (const char* name = reported.begin(); name < reported.end() && names.size() < numFunctions; name += names.back().size() + 1)
      names.emplace_back(name, strnlen(name, static_cast<size_t>(reported.end() - name)));
    return CUDA_SUCCESS;
  });
  for (size_t i = 0; i < names.size() && result == CUDA_SUCCESS; ++i) result = cuModuleGetFunction(&functions[i], mod, names[i].c_str());
  return result;
}

VGPU_EXPORT CUresult CUDAAPI cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  return enter([&](Thread& thread) -> CUresult {
    if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto* entry = thread.session.handles.find<api::Kind::FUNCTION>(toWire(hfunc));
    if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    KnownReplies& replies = entry->replies();
    if (!replies.find(allAttributes))
      if (CUresult error = askAttributes(thread, hfunc, replies)) return error;
    auto known = replies.find(attributeQuestion(attrib));
    if (!known) return askAttribute(thread, hfunc, attrib, *pi);
    *pi = static_cast<int>(*known);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  return withFunction(hfunc, [&](Thread& thread, FunctionLayout& layout) -> CUresult {
    Call<api::Cuda::FuncSetAttributeParams> frame(thread.of(toWire(hfunc)), api::Method::funcSetAttribute);
    frame->setHfunc(toWire(hfunc));
    frame->setAttrib(attrib);
    frame->setValue(value);
    if (CUresult error = frame.call()) return error;
    thread.changed(api::Kind::FUNCTION, toWire(hfunc));
    if (attrib == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) layout.maxDynamicSharedBytes = static_cast<uint32_t>(value);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
