// Link states: the driver's linker runs in the worker.
#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

template <typename Body>
CUresult withLink(CUlinkState state, Body&& body, const char* caller = __builtin_FUNCTION()) {
  return enter([&](Thread& thread) -> CUresult {
    auto* entry = thread.session.handles.find<api::Kind::LINK>(toWire(state));
    return entry == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(thread, *entry->linker);
  }, caller);
}

}  // namespace

extern "C" {

#undef cuLinkCreate
VGPU_EXPORT CUresult CUDAAPI cuLinkCreate_v2(unsigned int numOptions, CUjit_option* options, void** optionValues,
                                             CUlinkState* stateOut) {
  return enter([&](Thread& thread) -> CUresult {
    if (stateOut == nullptr) return CUDA_ERROR_INVALID_VALUE;
    JitOptions jit;
    if (CUresult bad = jit.read(numOptions, options, optionValues)) return bad;
    HandleTable& handles = thread.session.handles;
    uint64_t handle = handles.reserve(api::Kind::LINK, thread.device());
    auto linker = std::make_unique<Linker>(handle, std::move(jit));
    if (CUresult error = linker->create(thread)) return handles.abandon(handle), error;
    handles.publish<api::Kind::LINK>(handle, thread.owner(), [&](LinkState& state) { state.linker = std::move(linker); });
    *stateOut = fromWire<CUlinkState>(handle);
    return CUDA_SUCCESS;
  });
}

#undef cuLinkAddData
VGPU_EXPORT CUresult CUDAAPI cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                                              unsigned int numOptions, CUjit_option* options, void** optionValues) {
  return withLink(state, [&](Thread& thread, Linker& linker) -> CUresult {
    if (data == nullptr || size == 0 || type < 0 || type >= CU_JIT_NUM_INPUT_TYPES) return CUDA_ERROR_INVALID_VALUE;
    auto* bytes = static_cast<const std::byte*>(data);
    LinkInput input{type, name == nullptr ? "" : name, {bytes, bytes + size}, {}};
    if (CUresult bad = input.options.read(numOptions, options, optionValues)) return bad;
    return linker.add(thread, std::move(input));
  });
}

VGPU_EXPORT CUresult CUDAAPI cuLinkComplete(CUlinkState state, void** cubinOut, size_t* sizeOut) {
  return withLink(state, [&](Thread& thread, Linker& linker) -> CUresult {
    if (cubinOut == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::span<std::byte> image;
    if (CUresult error = linker.complete(thread, image)) return error;
    *cubinOut = image.data();
    if (sizeOut != nullptr) *sizeOut = image.size();
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuLinkDestroy(CUlinkState state) {
  return withLink(state, [&](Thread& thread, Linker& linker) -> CUresult {
    CUresult result = linker.destroy(thread);
    thread.session.handles.destroy<api::Kind::LINK>(toWire(state), [](LinkState& ended) { ended.reset(); });
    return result;
  });
}

}  // extern "C"
