// Modules: an image is passed to the worker as a blob; variables are looked up by name once.
#include <cstring>
#include <fstream>
#include <iterator>

#include "intercept/driver/blob.h"
#include "intercept/driver/names.h"
#include "intercept/session/entry.h"
#include "intercept/session/managed/touch-faults.h"
#include "vgpu/image/image.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// The only options of the JIT that are used: the buffer for its error log.
struct JitLog {
  char* buffer = nullptr;
  size_t bytes = 0;
  void** filled = nullptr;  // the option's value becomes how much of the buffer was used

  JitLog(unsigned count, CUjit_option* options, void** values) {
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffer = static_cast<char*>(values[i]);
      if (options[i] != CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) continue;
      bytes = toWire(values[i]) & 0xffffffff;
      filled = &values[i];
    }
  }
  void fill(const char* text) {
    if (buffer == nullptr || bytes == 0) return;
    size_t kept = std::min(std::strlen(text), bytes - 1);
    std::memcpy(buffer, text, kept);
    buffer[kept] = 0;
    if (filled != nullptr) *filled = fromWire<void*>(kept);
  }
};

CUresult load(Thread& thread, CUmodule* module, const void* image, JitLog log) {
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string problem;
  auto bytes = image::imageAt(image, problem);
  if (!problem.empty()) {
    log.fill(problem.c_str());
    return CUDA_ERROR_INVALID_IMAGE;
  }
  Session& session = thread.session;
  uint64_t blob = session.handles.create(api::Kind::BLOB, thread.device());
  uint64_t handle = thread.create(api::Kind::MODULE);
  CUresult result;
  // A suspend keeps the images of modules. An image whose module is not loaded yet is missing afterwards, and sent again.
  for (bool missing = true; missing;) {
    missing = false;
    result = bringBlob(thread, blob, bytes);
    if (result != CUDA_SUCCESS) break;
    Call<api::Cuda::ModuleLoadParams> frame(thread, api::Method::moduleLoad);
    frame->setModule(handle);
    frame->setBlob(blob);
    result = frame.call();
    if (!frame.hasResults()) break;
    auto reported = frame.results<api::Cuda::ModuleLoadResults>();
    missing = reported.getMissing();
    log.fill(reported.getLog().cStr());  // a refused image's log comes with the refusal
    if (result == CUDA_SUCCESS && reported.getPrints()) session.output.expect();
  }
  if (result != CUDA_SUCCESS) {
    dropBlob(thread, blob);
    session.handles.destroy(blob);
    session.handles.destroy(handle);
    return result;
  }
  session.handles.find<api::Kind::MODULE>(handle)->blob = blob;
  if (session.output.isExpected()) session.output.deliver(thread, thread.device());
  *module = fromWire<CUmodule>(handle);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                                                CUjit_option* options, void** optionValues) {
  return enter([&](Thread& thread) -> CUresult {
    if (numOptions != 0 && (options == nullptr || optionValues == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    return load(thread, module, image, JitLog(numOptions, options, optionValues));
  });
}

VGPU_EXPORT CUresult CUDAAPI cuModuleLoad(CUmodule* module, const char* fname) {
  if (module == nullptr || fname == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return answerOf([&]() -> CUresult {
    std::ifstream file(fname, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    image.push_back(0);
    return cuModuleLoadDataEx(module, image.data(), 0, nullptr, nullptr);
  });
}

VGPU_EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule hmod) {
  return enter([&](Thread& thread) -> CUresult {
    Session& session = thread.session;
    uint64_t handle = toWire(hmod);
    if (CUresult bad = thread.resolve(api::Kind::MODULE, false, handle)) return bad;
    if (CUresult error = synchronizeDevice(thread, handleDevice(handle))) return error;
    uint64_t blob = session.handles.find<api::Kind::MODULE>(handle)->blob;
    {
      Call<api::Cuda::ModuleUnloadParams> frame(thread.of(handle), api::Method::moduleUnload);
      frame->setHmod(handle);
      if (CUresult error = frame.post()) return error;
    }
    for (uint64_t function : session.functions.drop(handle)) session.handles.destroy(function);
    session.managed.removeModule(handle);
    session.variables.dropModule(handle);
    session.handles.destroy(handle);
    session.handles.destroy(blob);
    return dropBlob(thread, blob);
  });
}

#undef cuModuleGetGlobal
VGPU_EXPORT CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  return enter([&](Thread& thread) -> CUresult {
    Session& session = thread.session;
    uint64_t module = toWire(hmod);
    if (name == nullptr || *name == 0 || (dptr == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    if (std::strlen(name) > maxNameBytes) return CUDA_ERROR_NOT_FOUND;
    if (CUresult bad = thread.resolve(api::Kind::MODULE, false, module)) return bad;
    auto known = session.variables.find(module, name);
    bool isManaged = false;
    if (!known) {
      KnownVariable variable{.handle = session.handles.create(api::Kind::VARIABLE, handleDevice(module)), .module = module};
      Call<api::Cuda::ModuleVariableParams> frame(thread.of(module), api::Method::moduleVariable, dataWords(std::strlen(name) + 1));
      frame->setVariable(variable.handle);
      frame->setModule(module);
      frame->setName(name);
      frame.recordLater();
      if (CUresult error = frame.call()) {
        session.handles.destroy(variable.handle);
        return error;
      }
      auto reported = frame.results<api::Cuda::ModuleVariableResults>();
      variable.address = reported.getAddress();
      variable.bytes = reported.getBytes();
      frame.describe(variable.address, variable.bytes);
      frame.record();
      isManaged = reported.getManaged();
      session.variables.add(name, variable);
      known = variable;
    }
    if (isManaged && programHasDeviceArenas) {
      serveTouches();
      if (CUresult error = session.managed.addVariable(thread, handleDevice(module), module, known->address, known->bytes)) return error;
    }
    if (dptr != nullptr) *dptr = known->address;
    if (bytes != nullptr) *bytes = known->bytes;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
