// Which frames set a value, and what else must be equal for a later one to take an earlier one's place. A method that
// is not here appends to the recipe: wrong rows lose state, missing rows only cost space.
#include <capnp/serialize.h>

#include <algorithm>

#include "vgpu/api/cuda.capnp.h"
#include "vgpu/objects/record-table.h"

namespace vgpu {

namespace {

using Message = capnp::SegmentArrayMessageReader;

// The parameters that say what is set; the ones left out are the value. Objects are compared by the caller: both frames
// are of one record.
struct Setting {
  api::Method method;
  bool (*sameTarget)(Message& a, Message& b);
};

constexpr Setting settings[] = {
    {api::Method::ctxSetLimit,
     [](Message& a, Message& b) {
       return a.getRoot<api::Cuda::CtxSetLimitParams>().getLimit() ==
              b.getRoot<api::Cuda::CtxSetLimitParams>().getLimit();
     }},
    {api::Method::ctxSetCacheConfig, [](Message&, Message&) { return true; }},
    {api::Method::funcSetAttribute,
     [](Message& a, Message& b) {
       return a.getRoot<api::Cuda::FuncSetAttributeParams>().getAttrib() ==
              b.getRoot<api::Cuda::FuncSetAttributeParams>().getAttrib();
     }},
    {api::Method::funcSetCacheConfig, [](Message&, Message&) { return true; }},
};

const Setting* findSetting(api::Method method) {
  auto found = std::find_if(std::begin(settings), std::end(settings), [&](auto& s) { return s.method == method; });
  return found == std::end(settings) ? nullptr : found;
}

}  // namespace

bool isSetting(api::Method method) { return findSetting(method) != nullptr; }

bool supersedes(const RecordedFrame& later, const RecordedFrame& earlier) {
  if (later.method != earlier.method || later.device != earlier.device) return false;
  const Setting* setting = findSetting(later.method);
  if (setting == nullptr) return false;
  kj::ArrayPtr<const capnp::word> laterWords = later.words, earlierWords = earlier.words;
  Message a(kj::arrayPtr(&laterWords, 1)), b(kj::arrayPtr(&earlierWords, 1));
  return setting->sameTarget(a, b);
}

}  // namespace vgpu
