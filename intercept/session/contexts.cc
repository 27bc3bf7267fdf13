#include "intercept/session/contexts.h"

namespace vgpu::client {

uint64_t Contexts::ownerOf(uint64_t context) const {
  auto* state = handles.find<api::Kind::CONTEXT>(context);
  return state == nullptr || state->green.load(std::memory_order_relaxed) == 0 ? context : primary(handleDevice(context));
}

CUresult Contexts::retain(unsigned device) {
  primaries[device].retained.fetch_add(1);
  const bool isNew = !primaries[device].active.exchange(true);
  if (isNew) inheritCoreDumps(handles.find<api::Kind::CONTEXT>(primary(device))->coreDumps);
  return CUDA_SUCCESS;
}

bool Contexts::release(unsigned device, bool& last) {
  auto& retained = primaries[device].retained;
  for (int held = retained.load(); held > 0;)
    if (retained.compare_exchange_weak(held, held - 1)) return last = held == 1, true;
  return false;
}

// Relaxed: only the count matters, and each change is one atomic step. Ending the context (end()) provides the ordering.
CUresult Contexts::attach(uint64_t context) {
  auto* state = handles.find<api::Kind::CONTEXT>(context);
  if (state == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  state->uses.fetch_add(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

bool Contexts::detach(uint64_t context) {
  auto* state = handles.find<api::Kind::CONTEXT>(context);
  if (state == nullptr || isPrimary(ownerOf(context))) return false;
  return state->uses.fetch_sub(1, std::memory_order_relaxed) == 1;
}

bool Contexts::isLive(uint64_t context) const {
  if (isPrimary(context)) return isActive(handleDevice(context));
  return handles.find<api::Kind::CONTEXT>(context) != nullptr;
}

bool Contexts::end(uint64_t context) {
  bool ends;
  if (isPrimary(context)) {
    ends = primaries[handleDevice(context)].active.exchange(false);
  } else {
    ends = handles.destroy(context);
  }
  if (ends) ended.fetch_add(1, std::memory_order_release);
  return ends;
}

unsigned Contexts::flagsOf(uint64_t context, unsigned ofPrimary) const {
  auto* entry = handles.find<api::Kind::CONTEXT>(context);
  if (entry == nullptr) return 0;
  return entry->flags.load(std::memory_order_relaxed) | (isPrimary(ownerOf(context)) ? ofPrimary : 0);
}

CUresult Contexts::setFlags(uint64_t context, unsigned flags, unsigned lasting) {
  auto* entry = handles.find<api::Kind::CONTEXT>(context);
  if (entry == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!areFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  const unsigned kept = entry->flags.load(std::memory_order_relaxed) & lasting;
  entry->flags.store((flags & ~lasting) | kept, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
