#include "intercept/session/modules/modules.h"

#include <algorithm>

#include "intercept/session/call.h"
#include "intercept/session/managed/touch-faults.h"
#include "intercept/session/modules/blob.h"
#include "intercept/session/modules/names.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

namespace {

CUresult bringModule(Thread& thread, std::span<const std::byte> image, uint64_t module, uint64_t blob, uint64_t library, JitOptions& jit) {
  // A suspend keeps only images whose module is loaded. If the image was lost before its module was loaded, it is sent again.
  for (;;) {
    if (CUresult error = bringBlob(thread, blob, image)) return error;
    Call<api::Cuda::ModuleLoadParams> frame(thread.of(module), api::Method::moduleLoad, jit.words());
    frame->setModule(module);
    frame->setBlob(blob);
    frame->setLibrary(thread.session.devices.size() > 1 ? library : 0);
    jit.put(frame);
    CUresult result = frame.call();
    if (!frame.hasResults()) return result;
    auto reported = frame.results<api::Cuda::ModuleLoadResults>();
    if (reported.getMissing()) continue;
    jit.tell({reported.getErrors().cStr(), reported.getInfo().cStr(), reported.getMilliseconds()});  // for a refused image too
    if (result == CUDA_SUCCESS && reported.getPrints()) thread.session.output.expect();
    return result;
  }
}

std::unique_ptr<FunctionLayout> layoutOf(Thread& thread, uint64_t module, const std::string& name,
                                         const api::FrameReader<api::Cuda::ModuleFunctionResults>& reported) {
  auto layout = std::make_unique<FunctionLayout>(thread.session.functionChanges[handleDevice(module)]);
  layout->module = module;
  layout->context = thread.session.handles.find<api::Kind::MODULE>(module)->context;
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
  for (auto which : {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
                     CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES})
    layout->set(which, static_cast<int>(attribute(which)));
  keepAttributes(layout->replies, layout->replies.generation(), reported);
  return layout;
}

// Applies the program's settings of a library's kernel to its function, however the program got that.
CUresult setAsKernel(Thread& thread, uint64_t module, const std::string& name, uint64_t function) {
  const uint64_t library = thread.session.handles.find<api::Kind::MODULE>(module)->codeLibrary;
  auto* known = library == 0 ? nullptr : thread.session.handles.find<api::Kind::KERNEL>(thread.session.kernels.find(library, name));
  return known == nullptr ? CUDA_SUCCESS : known->kernel->applyTo(thread, function);
}

CUresult askForFunction(Thread& thread, uint64_t module, const std::string& name, uint64_t& handle) {
  HandleTable& handles = thread.session.handles;
  uint64_t made = handles.reserve(api::Kind::FUNCTION, handleDevice(module));
  Call<api::Cuda::ModuleFunctionParams> frame(thread.of(module), api::Method::moduleFunction, dataWords(name.size() + 1));
  frame->setFunction(made);
  frame->setModule(module);
  frame->setName(name.c_str());
  if (CUresult error = frame.call()) {
    handles.abandon(made);
    return error;
  }
  handles.publish<api::Kind::FUNCTION>(made, 0, [&](FunctionState& state) {
    state.layout = layoutOf(thread, module, name, frame.results<api::Cuda::ModuleFunctionResults>());
  });
  if (CUresult error = setAsKernel(thread, module, name, made)) return handles.destroy(made), error;
  handle = thread.session.functions.add(module, name, made);
  if (handle != made) handles.destroy(made);
  return CUDA_SUCCESS;
}

CUresult askWorkerForVariable(Thread& thread, uint64_t module, const std::string& name, KnownVariable& variable) {
  variable.module = module;
  Call<api::Cuda::ModuleVariableParams> frame(thread.of(module), api::Method::moduleVariable, dataWords(name.size() + 1));
  frame->setVariable(variable.handle);
  frame->setModule(module);
  frame->setName(name.c_str());
  frame.recordLater();  // the list keeps the address, for the comparison at a restore
  if (CUresult error = frame.call()) return error;
  auto reported = frame.results<api::Cuda::ModuleVariableResults>();
  variable.address = reported.getAddress();
  variable.bytes = reported.getBytes();
  variable.isManaged = reported.getManaged();
  frame.describe(variable.address, variable.bytes);
  frame.record();
  return CUDA_SUCCESS;
}

// A managed variable is made accessible before another thread can find it.
CUresult takeManaged(Thread& thread, const KnownVariable& variable) {
  if (!variable.isManaged || !programHasDeviceArenas) return CUDA_SUCCESS;
  serveTouches();
  return thread.session.managed.addVariable(thread, handleDevice(variable.module), variable.module, variable.address, variable.bytes);
}

CUresult askForVariable(Thread& thread, uint64_t module, const std::string& name, KnownVariable& variable) {
  Session& session = thread.session;
  const uint64_t made = session.handles.create(api::Kind::VARIABLE, handleDevice(module));
  variable = {.handle = made};
  CUresult result = askWorkerForVariable(thread, module, name, variable);
  if (result == CUDA_SUCCESS) result = takeManaged(thread, variable);
  if (result == CUDA_SUCCESS) variable = session.variables.add(name, variable);
  if (result != CUDA_SUCCESS || variable.handle != made) session.handles.destroy(made);
  return result;
}

}  // namespace

CUresult loadModule(Thread& thread, std::span<const std::byte> image, uint64_t context, JitOptions& jit, uint64_t& module,
                    uint64_t library) {
  Session& session = thread.session;
  unsigned device = handleDevice(context);
  uint64_t blob = session.handles.create(api::Kind::BLOB, device);
  uint64_t handle = session.handles.create(api::Kind::MODULE, device, context);
  auto& entry = *session.handles.find<api::Kind::MODULE>(handle);
  entry.blob = blob;
  entry.codeLibrary = library;
  if (CUresult error = bringModule(thread, image, handle, blob, library, jit)) {
    dropBlob(thread, blob);
    session.handles.destroy(blob);
    session.handles.destroy(handle);
    return error;
  }
  if (session.output.isExpected()) session.output.deliver(thread, device);
  module = handle;
  return CUDA_SUCCESS;
}

CUresult unloadModule(Thread& thread, uint64_t module) {
  Session& session = thread.session;
  // If the context is ending, the module ends even after an error.
  if (CUresult error = synchronizeDevice(thread, handleDevice(module)); error != CUDA_SUCCESS && !thread.takesDownContext) return error;
  uint64_t blob = session.handles.find<api::Kind::MODULE>(module)->blob;
  // Before the worker can reuse its variables' addresses for a module that another thread loads.
  session.managed.removeModule(module);
  for (uint64_t variable : session.variables.dropModule(module)) session.handles.destroy(variable);
  {
    Call<api::Cuda::ModuleUnloadParams> frame(thread.of(module), api::Method::moduleUnload);
    frame->setHmod(module);
    if (CUresult error = frame.post()) return error;
  }
  for (uint64_t function : session.functions.drop(module)) session.handles.destroy(function);
  dropReferences<api::Kind::TEXTURE_REFERENCE>(session.handles, module);
  dropReferences<api::Kind::SURFACE_REFERENCE>(session.handles, module);
  session.handles.destroy(module);
  session.handles.destroy(blob);
  return dropBlob(thread, blob);
}

CUresult findFunction(Thread& thread, uint64_t module, const std::string& name, uint64_t& function) {
  if (name.size() > maxNameBytes) return CUDA_ERROR_NOT_FOUND;
  function = thread.session.functions.find(module, name);
  return function != 0 ? CUDA_SUCCESS : askForFunction(thread, module, name, function);
}

CUresult findVariable(Thread& thread, uint64_t module, const std::string& name, KnownVariable& variable) {
  if (name.size() > maxNameBytes) return CUDA_ERROR_NOT_FOUND;
  auto known = thread.session.variables.find(module, name);
  if (!known) return askForVariable(thread, module, name, variable);
  variable = *known;
  return CUDA_SUCCESS;
}

CUresult listFunctions(Thread& thread, uint64_t module, std::vector<std::string>& names) {
  for (;;) {
    Call<api::Cuda::ModuleFunctionNamesParams> frame(thread.of(module), api::Method::moduleFunctionNames);
    frame->setModule(module);
    frame->setFirst(static_cast<uint32_t>(names.size()));
    if (CUresult error = frame.call()) return error;
    auto reported = frame.results<api::Cuda::ModuleFunctionNamesResults>();
    auto bytes = reported.getNames();
    auto begin = bytes.begin();
    for (auto end = begin; (end = std::find(begin, bytes.end(), kj::byte{0})) != bytes.end(); begin = end + 1)
      names.emplace_back(begin, end);
    if (names.size() >= reported.getCount() || bytes.size() == 0) return CUDA_SUCCESS;
  }
}

CUresult setAttribute(Thread& thread, uint64_t function, CUfunction_attribute attribute, int value) {
  if (attribute < 0 || attribute > 63) return CUDA_ERROR_INVALID_VALUE;  // for -1 a driver (580) reads outside its table
  Call<api::Cuda::FuncSetAttributeParams> frame(thread.of(function), api::Method::funcSetAttribute);
  frame->setHfunc(function);
  frame->setAttrib(attribute);
  frame->setValue(value);
  if (CUresult error = frame.call()) return error;
  thread.changed(api::Kind::FUNCTION, function);
  auto* entry = thread.session.handles.find<api::Kind::FUNCTION>(function);
  if (entry != nullptr) entry->layout->set(attribute, value);
  return CUDA_SUCCESS;
}

CUresult setCacheConfig(Thread& thread, uint64_t function, CUfunc_cache config) {
  Call<api::Cuda::FuncSetCacheConfigParams> frame(thread.of(function), api::Method::funcSetCacheConfig);
  frame->setHfunc(function);
  frame->setConfig(config);
  if (CUresult error = frame.call()) return error;
  thread.changed(api::Kind::FUNCTION, function);
  return CUDA_SUCCESS;
}

KnownReplies::Question questionOf(CUfunction_attribute attribute) {
  return {api::Method::funcGetAttribute, {static_cast<uint32_t>(attribute)}};
}

}  // namespace vgpu::client
