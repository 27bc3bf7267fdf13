// Modules: an image is passed to the worker as a blob; each variable is looked up by name once.
#include "intercept/driver/shared.h"
#include "intercept/session/modules/modules.h"
#include "vgpu/image/image.h"

using namespace vgpu;
using namespace vgpu::client;

CUresult vgpu::client::readImage(const void* image, JitOptions& jit, std::span<const std::byte>& bytes) {
  std::string problem;
  bytes = image::imageAt(image, problem);
  if (problem.empty()) return CUDA_SUCCESS;
  jit.tell({problem, {}, 0});
  return CUDA_ERROR_INVALID_IMAGE;
}

CUresult vgpu::client::giveVariable(Thread& thread, uint64_t module, const char* name, CUdeviceptr* address, size_t* bytes) {
  if (name == nullptr || *name == 0 || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  KnownVariable variable;
  if (CUresult error = findVariable(thread, module, name, variable)) return error;
  if (address != nullptr) *address = variable.address;
  if (bytes != nullptr) *bytes = variable.bytes;
  return CUDA_SUCCESS;
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                                                CUjit_option* options, void** optionValues) {
  return enter([&](Thread& thread) -> CUresult {
    if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    JitOptions jit;
    std::span<const std::byte> bytes;
    if (CUresult bad = jit.read(numOptions, options, optionValues)) return bad;
    if (CUresult bad = readImage(image, jit, bytes)) return bad;
    uint64_t handle = 0;
    CUresult result = loadModule(thread, bytes, thread.owner(), jit, handle);
    if (result == CUDA_SUCCESS) *module = fromWire<CUmodule>(handle);
    return result;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions, CUmodule mod) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t module = toWire(mod);
    if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = thread.resolve(api::Kind::MODULE, false, module)) return bad;
    std::vector<std::string> names;
    if (CUresult error = listFunctions(thread, module, names)) return error;
    for (size_t i = 0; i < std::min<size_t>(numFunctions, names.size()); ++i) {
      uint64_t function = 0;
      if (CUresult error = findFunction(thread, module, names[i], function)) return error;
      functions[i] = fromWire<CUfunction>(function);
    }
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
