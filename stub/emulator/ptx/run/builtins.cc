#include "stub/emulator/ptx/run/builtins.h"

#include <algorithm>
#include <cstring>

#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/format.h"
#include "stub/emulator/ptx/run/handlers.h"
#include "stub/emulator/ptx/run/heap.h"

namespace vgpu::emulator {
namespace {

// A parameter is rows of 4-byte lanes.
uint32_t word(Warp& warp, const Slot& slot, int lane, int index = 0) {
  return warp.lanes<uint32_t>(slot.offset)[index * laneCount + lane];
}
uint64_t argument64(Warp& warp, const CallSite& site, size_t index, int lane) {
  const Slot& slot = site.arguments[index];
  return word(warp, slot, lane) | (slot.bytes > 4 * laneCount ? uint64_t{word(warp, slot, lane, 1)} << 32 : 0);
}
void result64(Warp& warp, const CallSite& site, int lane, uint64_t value) {
  uint32_t* rows = warp.lanes<uint32_t>(site.results[0].offset);
  rows[lane] = static_cast<uint32_t>(value);
  if (site.results[0].bytes > 4 * laneCount) rows[laneCount + lane] = static_cast<uint32_t>(value >> 32);
}

const CallSite& siteOf(const Inst* inst) { return *static_cast<const CallSite*>(inst->aux); }

// A string in device memory; nothing, after a fault, if it cannot be read.
std::optional<std::string> readText(Warp& warp, const Inst* inst, int lane, uint64_t address, uint32_t charBytes = 1) {
  constexpr size_t longestText = 1 << 16;
  std::string text;
  while (text.size() < longestText) {
    const std::byte* at = warp.locate(inst, lane, address + text.size() * charBytes, 1, 1, false);
    if (!at) return std::nullopt;
    if (*at == std::byte{0}) break;
    text.push_back(static_cast<char>(*at));
  }
  return text;
}

class LaneArguments : public FormatArguments {
 public:
  LaneArguments(Warp& warp, const Inst* inst, int lane, uint64_t address)
      : warp(warp), inst(inst), lane(lane), position(address) {}
  uint64_t next(uint32_t bytes) override {
    position = (position + bytes - 1) / bytes * bytes;
    uint64_t value = 0;
    if (const std::byte* at = failed ? nullptr : warp.locate(inst, lane, position, bytes, 1, false))
      std::memcpy(&value, at, bytes);
    else
      failed = true;
    position += bytes;
    return value;
  }
  std::string text(uint64_t address) override {
    if (address == 0) return "(null)";
    const auto found = failed ? std::nullopt : readText(warp, inst, lane, address);
    failed |= !found;
    return found.value_or("");
  }
  bool failed = false;

 private:
  Warp& warp;
  const Inst* inst;
  int lane;
  uint64_t position;
};

const Inst* print(Warp& warp, const Inst* inst) {
  const CallSite& site = siteOf(inst);
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const auto text = readText(warp, inst, lane, argument64(warp, site, 0, lane));
    if (!text) return nullptr;
    LaneArguments arguments(warp, inst, lane, argument64(warp, site, 1, lane));
    const int count = format(*text, arguments, warp.block().output);
    if (arguments.failed) return nullptr;
    result64(warp, site, lane, static_cast<uint32_t>(count));
  }
  return inst + 1;
}

const Inst* allocate(Warp& warp, const Inst* inst) {
  const CallSite& site = siteOf(inst);
  const Launch& launch = warp.block().launch();
  const Warp::Span* span = launch.heapBytes ? warp.findSpan(launch.heapBase, launch.heapBytes, true) : nullptr;
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    uint64_t found = 0;
    if (span) {
      Heap heap(span->host + (launch.heapBase - span->base), launch.heapBytes);
      if (const uint64_t offset = heap.allocate(argument64(warp, site, 0, lane))) found = launch.heapBase + offset;
    }
    result64(warp, site, lane, found);
  }
  return inst + 1;
}

const Inst* release(Warp& warp, const Inst* inst) {
  const CallSite& site = siteOf(inst);
  const Launch& launch = warp.block().launch();
  const Warp::Span* span = launch.heapBytes ? warp.findSpan(launch.heapBase, launch.heapBytes, true) : nullptr;
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint64_t address = argument64(warp, site, 0, lane);
    if (address == 0) continue;
    if (!span ||
        !Heap(span->host + (launch.heapBase - span->base), launch.heapBytes).release(address - launch.heapBase))
      return warp.fault(Fault::Kind::illegalAddress, inst, lane, "free() of an address that malloc() did not give");
  }
  return inst + 1;
}

// void __assertfail(const char* message, const char* file, unsigned line, const char* function, size_t charSize)
const Inst* assertFail(Warp& warp, const Inst* inst) {
  const CallSite& site = siteOf(inst);
  const int lane = warp.firstActive();
  const auto charBytes = static_cast<uint32_t>(std::clamp<uint64_t>(argument64(warp, site, 4, lane), 1, 4));
  const auto message = readText(warp, inst, lane, argument64(warp, site, 0, lane), charBytes);
  const auto file = message ? readText(warp, inst, lane, argument64(warp, site, 1, lane), charBytes) : std::nullopt;
  const auto function = file ? readText(warp, inst, lane, argument64(warp, site, 3, lane), charBytes) : std::nullopt;
  if (!function) return nullptr;
  return warp.fault(Fault::Kind::assertion, inst, lane,
                    *file + ":" + std::to_string(argument64(warp, site, 2, lane)) + ": " + *function + ": assertion `" +
                        *message + "` failed");
}

// void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value)
const Inst* setCondition(Warp& warp, const Inst* inst) {
  const CallSite& site = siteOf(inst);
  const Launch& launch = warp.block().launch();
  for (uint32_t left = launch.setCondition ? warp.active : 0; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    launch.setCondition(argument64(warp, site, 0, lane), word(warp, site.arguments[1], lane));
  }
  return inst + 1;
}

struct BuiltinRow {
  std::string_view name;
  size_t arguments, results;
  Handler handler;
};

constexpr BuiltinRow builtinRows[] = {
    {"vprintf", 2, 1, print},
    {"malloc", 1, 1, allocate},
    {"free", 1, 0, release},
    {"__assertfail", 5, 0, assertFail},
    {"cudaGraphSetConditional", 2, 0, setCondition},
};

}  // namespace

bool isBuiltin(std::string_view name) {
  return std::any_of(std::begin(builtinRows), std::end(builtinRows),
                     [&](const BuiltinRow& row) { return row.name == name; });
}

Handler findBuiltin(std::string_view name, size_t arguments, size_t results) {
  for (const BuiltinRow& row : builtinRows)
    if (row.name == name && row.arguments == arguments && row.results == results) return row.handler;
  return nullptr;
}

}  // namespace vgpu::emulator
