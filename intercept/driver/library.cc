// Code libraries: loaded immediately for the caller's context, for other contexts at their first use there. Code that cannot be translated
// is refused when something of it is used (docs/facts.md).
#include <algorithm>

#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// False if an option is unknown.
bool readOptions(const CUlibraryOption* options, void** values, unsigned count, bool& isPreserved) {
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] < 0 || options[i] >= CU_LIBRARY_NUM_OPTIONS) return false;
    if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) isPreserved = values != nullptr && values[i] != nullptr;
  }
  return true;
}

// The handle of a kernel of the library: one for each name.
CUkernel kernelOf(Thread& thread, uint64_t library, const std::string& name) {
  Session& session = thread.session;
  uint64_t handle = session.kernels.find(library, name);
  if (handle == 0) {
    uint64_t made = session.handles.reserve(api::Kind::KERNEL, 0);
    session.handles.publish<api::Kind::KERNEL>(made, 0, [&](KernelState& state) { state.kernel = std::make_unique<LibraryKernel>(library, name); });
    handle = session.kernels.add(library, name, made);
    if (handle != made) session.handles.destroy(made);
  }
  return fromWire<CUkernel>(handle);
}

}  // namespace

CUresult vgpu::client::listKernels(CUkernel* kernels, unsigned most, unsigned* count, CUlibrary library) {
  return withLibrary(library, [&](Thread& thread, CodeLibrary& code) -> CUresult {
    std::vector<std::string> names;  // stays empty for code that cannot be translated
    CUresult error = code.listKernels(thread, contextOn(thread, thread.device()), names);
    if (error != CUDA_SUCCESS && !isOfCode(error)) return error;
    if (count != nullptr) *count = static_cast<unsigned>(names.size());
    for (size_t i = 0; i < std::min<size_t>(most, names.size()); ++i) kernels[i] = kernelOf(thread, toWire(library), names[i]);
    return CUDA_SUCCESS;
  });
}

CUresult vgpu::client::giveKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return withLibrary(library, [&](Thread& thread, CodeLibrary& code) -> CUresult {
    if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::string> names;
    if (CUresult error = code.listKernels(thread, contextOn(thread, thread.device()), names)) return error;
    if (std::ranges::find(names, name) == names.end()) return CUDA_ERROR_NOT_FOUND;
    *kernel = kernelOf(thread, toWire(library), name);
    return CUDA_SUCCESS;
  });
}

CUresult vgpu::client::giveLibraryVariable(CUlibrary library, const char* name, CUdeviceptr* address, size_t* bytes,
                                           bool isManaged) {
  return withModuleOf(library, [&](Thread& thread, uint64_t module) -> CUresult {
    KnownVariable variable;
    if (name == nullptr || *name == 0) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult error = findVariable(thread, module, name, variable))  // INVALID_VALUE: the name is a kernel's
      return isManaged && error == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_NOT_FOUND : error;
    return variable.isManaged || !isManaged ? giveVariable(thread, module, name, address, bytes) : CUDA_ERROR_NOT_FOUND;
  });
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions,
                                               void** jitOptionsValues, unsigned int numJitOptions, CUlibraryOption* libraryOptions,
                                               void** libraryOptionValues, unsigned int numLibraryOptions) {
  return enterAny([&](Thread& thread) -> CUresult {
    bool isPreserved = false;
    if (library == nullptr || code == nullptr || (numLibraryOptions != 0 && libraryOptions == nullptr) ||
        !readOptions(libraryOptions, libraryOptionValues, numLibraryOptions, isPreserved))
      return CUDA_ERROR_INVALID_VALUE;
    JitOptions jit;
    std::span<const std::byte> image;
    if (CUresult bad = jit.read(numJitOptions, jitOptions, jitOptionsValues)) return bad;
    if (CUresult bad = readImage(code, jit, image)) return bad;
    HandleTable& handles = thread.session.handles;
    uint64_t handle = handles.reserve(api::Kind::LIBRARY, thread.device()), module = 0;
    auto made = std::make_unique<CodeLibrary>(handle, image, isPreserved, std::move(jit));
    CUresult result = made->moduleIn(thread, contextOn(thread, thread.device()), module);
    made->forgetPlaces();
    if (result != CUDA_SUCCESS && !isOfCode(result)) return handles.abandon(handle), result;
    handles.publish<api::Kind::LIBRARY>(handle, 0, [&](CodeLibraryState& state) { state.code = std::move(made); });
    *library = fromWire<CUlibrary>(handle);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
  return withLibrary(library, [&](Thread& thread, CodeLibrary& code) -> CUresult {
    CUresult result = code.unload(thread);
    for (uint64_t kernel : thread.session.kernels.drop(toWire(library))) thread.session.handles.destroy(kernel);
    thread.session.handles.destroy<api::Kind::LIBRARY>(toWire(library), [](CodeLibraryState& state) { state.reset(); });
    return result;
  });
}

}  // extern "C"
