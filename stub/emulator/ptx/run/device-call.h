// One thread's call of a device runtime function, and the templates that make such functions handlers.
#pragma once

#include <driver_types.h>

#include <cstring>

#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/builtins.h"
#include "stub/emulator/ptx/run/call-values.h"

namespace vgpu::emulator {

class DeviceCall {
 public:
  DeviceCall(Warp& warp, const Inst* inst, int lane) : warp(warp), inst(inst), lane(lane) {}

  // ---- arguments: by index, and for structures also by the first 4-byte word
  uint64_t argument(size_t index, int firstWord = 0) { return argument64(warp, siteOf(inst), index, lane, firstWord); }
  int number(size_t index) { return static_cast<int>(argument(index)); }
  std::array<uint32_t, 3> dimensions(size_t index) {
    const Slot& slot = siteOf(inst).arguments[index];
    return {word(warp, slot, lane, 0), word(warp, slot, lane, 1), word(warp, slot, lane, 2)};
  }
  void result(uint64_t value) { result64(warp, siteOf(inst), lane, value); }

  // ---- values in memory; false, after a fault, if the thread may not access them
  template <class T>
  bool store(uint64_t address, const T& value) {
    std::byte* const place = warp.locate(inst, lane, address, sizeof value, alignof(T), true);
    if (place) std::memcpy(place, &value, sizeof value);
    return place != nullptr;
  }
  template <class T>
  bool load(uint64_t address, T& value) {
    const std::byte* const place = warp.locate(inst, lane, address, sizeof value, alignof(T), false);
    if (place) std::memcpy(&value, place, sizeof value);
    return place != nullptr;
  }
  std::nullopt_t fault(Fault::Kind kind, std::string what) {
    warp.fault(kind, inst, lane, std::move(what));
    return std::nullopt;
  }

  Warp& threads() { return warp; }
  const Launch& launch() { return warp.block().launch(); }
  DeviceRuntime& runtime() { return *launch().runtime; }
  DeviceLaunches& launches() { return warp.block().grid().launches; }
  uint64_t pendingLimit() { return runtime().limit(cudaLimitDevRuntimePendingLaunchCount).value_or(0); }
  // The thread's last error, which cudaGetLastError() returns.
  uint32_t& lastError() { return warp.block().deviceError(warp.index() * laneCount + static_cast<uint32_t>(lane)); }

 private:
  Warp& warp;
  const Inst* inst;
  int lane;
};

// The function's return value for the thread; nothing after a fault.
using DeviceAnswer = std::optional<uint64_t>;
using DeviceFunction = DeviceAnswer (*)(DeviceCall&);

// The handler of a call of `function`.
template <DeviceFunction function>
const Inst* answer(Warp& warp, const Inst* inst) {
  for (uint32_t left = warp.active; left; left &= left - 1) {
    DeviceCall call(warp, inst, __builtin_ctz(left));
    if (!call.launch().runtime)
      return warp.fault(Fault::Kind::notSupported, inst, warp.firstActive(),
                        "a CUDA call by a kernel: this launch does not allow such calls");
    const DeviceAnswer result = function(call);
    if (!result) return nullptr;
    call.result(*result);
  }
  return inst + 1;
}

// The same for a function that returns cudaError_t: an error becomes the thread's last one.
template <DeviceFunction function>
DeviceAnswer noting(DeviceCall& call) {
  const DeviceAnswer result = function(call);
  if (result && *result != cudaSuccess) call.lastError() = static_cast<uint32_t>(*result);
  return result;
}
template <DeviceFunction function>
constexpr Handler answerError = answer<noting<function>>;

// The order of an operation in `stream`; nothing if there is no such stream.
std::optional<Order> orderOf(DeviceCall&, uint64_t stream);

// Rows of the device runtime's functions, from each file.
std::span<const BuiltinRow> deviceGraphBuiltins();
std::span<const BuiltinRow> deviceLaunchBuiltins();
std::span<const BuiltinRow> deviceMemoryBuiltins();
std::span<const BuiltinRow> deviceQueryBuiltins();

}  // namespace vgpu::emulator
