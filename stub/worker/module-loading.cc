#include "stub/worker/module-loading.h"

#include <mutex>
#include <string>

#include "stub/worker/execution.h"
#include "stub/worker/image-store.h"
#include "stub/worker/machine-code.h"

namespace vgpu::stub {

CUresult ModuleLoading::load(Execution& on) {
  if (!blob.facts().problem.empty()) return CUDA_ERROR_INVALID_IMAGE;
  real = on.moduleGroups.claim(handle, number);
  if (real != nullptr) return CUDA_SUCCESS;
  const uint64_t shares = blob.facts().hasManaged ? library : 0;
  std::string unpacked;
  ImageCode code;
  if (shares == 0 && jit.ownCount() == 0) {  // the program's JIT options apply to the image
    code = blob.storedCode();
    if (code.architecture != on.architecture) {
      unpacked = unpackedCode(blob.bytes(), on.architecture);
      code = {on.architecture, std::as_bytes(std::span(unpacked))};
    }
  }
  CUresult result = give(on, shares, code.bytes);
  if (result == CUDA_SUCCESS) keep(on, code);
  return result;
}

// A module without variables can be loaded anywhere. `shares`: the library whose modules on other GPUs share its managed variables, 0 if
// none.
CUresult ModuleLoading::give(Execution& on, uint64_t shares, std::span<const std::byte> code) {
  // The driver reads PTX up to a zero byte; a blob always has one after its bytes.
  auto call = [&](CUmodule& module) {
    if (!code.empty() && on.driver.cuModuleLoadDataEx(&module, code.data(), 0, nullptr, nullptr) == CUDA_SUCCESS) return CUDA_SUCCESS;
    return on.session.sharedModules.load(shares, blob.bytes().data(), blob.facts().variables,
                                         {jit.count(), jit.options(), jit.optionValues()}, module);
  };
  const bool hasVariables = !blob.facts().variables.empty() || !blob.facts().unknown.empty();
  if (!hasVariables) return call(real);
  std::lock_guard lock(on.session.moduleLoading);
  return on.moduleGroups.load(handle, number, shares, call, real);
}

// Keeps only an image that the driver has accepted, under the digest of the bytes that the driver got, and only with complete facts: the
// store's format cannot express incomplete ones.
void ModuleLoading::keep(Execution& on, const ImageCode& code) {
  if (on.session.images.store == nullptr || !blob.isNew() || !blob.facts().unknown.empty()) return;
  on.session.images.store->add(digestOf(blob.bytes()), blob.bytes(), blob.facts(), code);
  blob.noteKept();
}

}  // namespace vgpu::stub
