#include "intercept/session/context-settings.h"

#include <algorithm>
#include <ranges>

#include "intercept/session/call.h"
#include "intercept/session/stream-priority.h"

namespace vgpu::client {

namespace {

CUresult tell(Thread& thread, unsigned device, CUfunc_cache preference) {
  Call<api::Cuda::CtxSetCacheConfigParams> frame(thread.on(device), api::Method::ctxSetCacheConfig);
  frame->setConfig(preference);
  if (CUresult error = frame.call()) return error;
  ++thread.session.functionChanges[device];
  return CUDA_SUCCESS;
}

CUresult tell(Thread& thread, unsigned device, CUlimit limit, uint64_t value) {
  Call<api::Cuda::CtxSetLimitParams> frame(thread.on(device), api::Method::ctxSetLimit);
  frame->setLimit(limit);
  frame->setValue(value);
  if (CUresult error = frame.call()) return error;
  thread.session.deviceReplies[device].forget();
  return CUDA_SUCCESS;
}

CUresult tellWorker(Thread& thread, unsigned device, int setting, uint64_t value) {
  if (setting == ContextSettings::cachePreference) return tell(thread, device, static_cast<CUfunc_cache>(value));
  return tell(thread, device, static_cast<CUlimit>(setting), value);
}

CUresult askLimit(Thread& thread, unsigned device, int limit, uint64_t& value) {
  Call<api::Cuda::CtxGetLimitParams> frame(thread.on(device), api::Method::ctxGetLimit);
  frame->setLimit(limit);
  if (CUresult error = frame.call()) return error;
  value = frame.results<api::Cuda::CtxGetLimitResults>().getPvalue();
  return CUDA_SUCCESS;
}

}  // namespace

const ContextSettings::Value* ContextSettings::find(unsigned device, int setting) const {
  for (auto& value : std::views::reverse(values))
    if (value.device == device && value.setting == setting) return &value;
  return nullptr;
}

// Each thread reads the value before it sets one, so whichever stores its value first stores one from before any was set.
void ContextSettings::noteFirst(Thread& thread, unsigned device, int setting) {
  auto isKnown = [&] {
    std::lock_guard lock(mutex);
    return find(device, setting) != nullptr;
  };
  uint64_t value = CU_FUNC_CACHE_PREFER_NONE;
  if (isKnown() || (setting != cachePreference && askLimit(thread, device, setting, value) != CUDA_SUCCESS)) return;
  std::lock_guard lock(mutex);
  if (find(device, setting) == nullptr) values.push_back({device, setting, 0, value});
}

CUresult ContextSettings::set(Thread& thread, int setting, uint64_t value) {
  const Value made{thread.device(), setting, thread.owner(), value};
  noteFirst(thread, made.device, setting);
  if (CUresult error = tellWorker(thread, made.device, setting, value)) return error;
  std::lock_guard lock(mutex);
  std::erase_if(values, [&](const Value& each) { return each.context == made.context && each.setting == setting; });
  values.push_back(made);
  return CUDA_SUCCESS;
}

void ContextSettings::end(Thread& thread, unsigned device, uint64_t context) {
  std::vector<Value> due;
  {
    std::lock_guard lock(mutex);
    auto isOver = [&](const Value& each) {
      return each.device == device && each.context != 0 && (context == 0 || each.context == context);
    };
    std::vector<int> changed;
    for (int setting = 0; setting <= cachePreference; ++setting)
      if (auto* now = find(device, setting); now != nullptr && isOver(*now)) changed.push_back(setting);
    std::erase_if(values, isOver);
    for (int setting : changed)
      if (auto* now = find(device, setting); now != nullptr && context != 0) due.push_back(*now);
  }
  // Errors are ignored: the driver refuses, for instance, to change the size of malloc()'s heap once kernels have used it.
  for (const Value& each : due) tellWorker(thread, device, each.setting, each.value);
  endDefaultStream(thread, device, context);
}

}  // namespace vgpu::client
