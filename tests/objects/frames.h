// Frames as a session's recorder passes them to the list.
#pragma once

#include <string.h>

#include <string>
#include <vector>

#include "../scratch-directory.h"
#include "cuda-frames.h"
#include "vgpu/api/place.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::test {

constexpr uint64_t address = 0x2000'0000'0000;  // of the first allocation

// A frame, whose number is its position; `fill` sets the parameters.
template <typename Params, typename Fill>
RecordedFrame makeFrame(uint64_t position, api::Method method, uint8_t device, Fill fill) {
  std::vector<capnp::word> words;
  api::FrameBuilder<Params> builder(words);
  fill(builder);
  return {{position, position, 0, 0, method, device}, kj::heapArray<capnp::word>(words.data(), words.size())};
}

inline RecordedFrame memAlloc(uint64_t position, uint64_t address, uint64_t bytes = 256) {
  auto frame = makeFrame<api::Cuda::MemAllocParams>(position, api::Method::memAlloc, 0, [&](auto& p) {
    p.setAddress(address);
    p.setBytes(bytes);
  });
  frame.address = address;
  frame.bytes = bytes;
  return frame;
}

inline RecordedFrame memFree(uint64_t position, uint64_t address) {
  return makeFrame<api::Cuda::MemFreeParams>(position, api::Method::memFree, 0, [&](auto& p) { p.setAddress(address); });
}

inline RecordedFrame moduleLoad(uint64_t position, uint64_t module, uint64_t blob = 1) {
  return makeFrame<api::Cuda::ModuleLoadParams>(position, api::Method::moduleLoad, 0, [&](auto& p) {
    p.setModule(module);
    p.setBlob(blob);
  });
}

inline RecordedFrame moduleUnload(uint64_t position, uint64_t module) {
  return makeFrame<api::Cuda::ModuleUnloadParams>(position, api::Method::moduleUnload, 0,
                                                  [&](auto& p) { p.setHmod(module); });
}

inline RecordedFrame moduleFunction(uint64_t position, uint64_t function, uint64_t module,
                                    const std::string& name = "f") {
  return makeFrame<api::Cuda::ModuleFunctionParams>(position, api::Method::moduleFunction, 0, [&](auto& p) {
    p.setFunction(function);
    p.setModule(module);
    p.setName(name.c_str());
  });
}

inline RecordedFrame funcSetAttribute(uint64_t position, uint64_t function, int attribute, int value) {
  return makeFrame<api::Cuda::FuncSetAttributeParams>(position, api::Method::funcSetAttribute, 0, [&](auto& p) {
    p.setHfunc(function);
    p.setAttrib(attribute);
    p.setValue(value);
  });
}

inline RecordedFrame ctxSetLimit(uint64_t position, uint8_t device, unsigned limit, uint64_t value) {
  return makeFrame<api::Cuda::CtxSetLimitParams>(position, api::Method::ctxSetLimit, device, [&](auto& p) {
    p.setLimit(limit);
    p.setValue(value);
  });
}

// A copy: posted, or waited for with copy3dBack; `more` sets further fields.
template <typename More>
RecordedFrame copy3d(api::Method method, api::Place to, api::Place from, uint64_t width, More more) {
  return makeFrame<api::Cuda::Copy3dParams>(0, method, 0, [&](auto& p) {
    p.setTo(to.number());
    p.setFrom(from.number());
    p.setWidth(width);
    more(p);
  });
}
inline RecordedFrame copy3d(api::Place to, api::Place from, uint64_t width, uint64_t height = 0, uint64_t depth = 0) {
  return copy3d(api::Method::copy3d, to, from, width, [&](auto& p) { p.setHeight(height), p.setDepth(depth); });
}
inline RecordedFrame copy3dBack(api::Place to, api::Place from, uint64_t width, uint64_t height = 0, uint64_t depth = 0) {
  return copy3d(api::Method::copy3dBack, to, from, width, [&](auto& p) { p.setHeight(height), p.setDepth(depth); });
}

inline std::vector<ObjectRecord> readAll(const std::string& directory) {
  std::vector<ObjectRecord> records;
  readObjects(directory, [&](ObjectRecord&& record) { records.push_back(std::move(record)); });
  return records;
}

}  // namespace vgpu::test
