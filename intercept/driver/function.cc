// Functions of modules: each name is looked up once, and attributes are requested from the driver once until they change.
#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// Requests the attributes of a function that has changed since it was looked up.
CUresult askAttributes(Thread& thread, uint64_t function, KnownReplies& replies) {
  uint64_t generation = replies.generation();
  Call<api::Cuda::FuncAttributesParams> frame(thread.of(function), api::Method::funcAttributes);
  frame->setFunction(function);
  if (CUresult error = frame.call()) return error;
  keepAttributes(replies, generation, frame.results<api::Cuda::FuncAttributesResults>());
  return CUDA_SUCCESS;
}

// Requests an attribute that only the worker's driver can report: one that it does not support, or that we do not know.
CUresult askAttribute(Thread& thread, uint64_t function, CUfunction_attribute attribute, int& value) {
  Call<api::Cuda::FuncGetAttributeParams> frame(thread.of(function), api::Method::funcGetAttribute);
  frame->setHfunc(function);
  frame->setAttrib(attribute);
  if (CUresult error = frame.call()) return error;
  value = frame.results<api::Cuda::FuncGetAttributeResults>().getPi();
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t function = toWire(hfunc);
    if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = thread.resolve(api::Kind::FUNCTION, false, function)) return bad;
    KnownReplies& replies = thread.session.handles.find<api::Kind::FUNCTION>(function)->replies();
    if (!replies.find(allAttributes))
      if (CUresult error = askAttributes(thread, function, replies)) return error;
    auto known = replies.find(questionOf(attrib));
    if (!known) return askAttribute(thread, function, attrib, *pi);
    *pi = static_cast<int>(*known);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
