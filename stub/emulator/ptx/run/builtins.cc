#include "stub/emulator/ptx/run/builtins.h"

#include <algorithm>
#include <cstring>

#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/call-values.h"
#include "stub/emulator/ptx/run/device-call.h"
#include "stub/emulator/ptx/run/format.h"
#include "stub/emulator/ptx/run/handlers.h"
#include "stub/emulator/ptx/run/heap.h"

namespace vgpu::emulator {
namespace {

// Reads a string in device memory; nothing, after a fault, if it cannot be read.
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

const Warp::Span* heapOf(Warp& warp) {
  const Launch& launch = warp.block().launch();
  return launch.heapBytes ? warp.findSpan(launch.heapBase, launch.heapBytes, true) : nullptr;
}

const Inst* allocate(Warp& warp, const Inst* inst) {
  const CallSite& site = siteOf(inst);
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    result64(warp, site, lane, allocateFromHeap(warp, argument64(warp, site, 0, lane)));
  }
  return inst + 1;
}

const Inst* release(Warp& warp, const Inst* inst) {
  const CallSite& site = siteOf(inst);
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint64_t address = argument64(warp, site, 0, lane);
    if (address != 0 && !releaseToHeap(warp, address))
      return warp.fault(Fault::Kind::illegalAddress, inst, lane, "free() of an address that malloc() did not return");
  }
  return inst + 1;
}

std::string inBrackets(const std::array<uint32_t, 3>& at) {
  return "[" + std::to_string(at[0]) + "," + std::to_string(at[1]) + "," + std::to_string(at[2]) + "]";
}

// The message has the format of the programming guide ("Assertion"), because programs may parse it.
// void __assertfail(const char* message, const char* file, unsigned line, const char* function, size_t charSize)
const Inst* assertFail(Warp& warp, const Inst* inst) {
  const CallSite& site = siteOf(inst);
  const int lane = warp.firstActive();
  const auto charBytes = static_cast<uint32_t>(std::clamp<uint64_t>(argument64(warp, site, 4, lane), 1, 4));
  const auto message = readText(warp, inst, lane, argument64(warp, site, 0, lane), charBytes);
  const auto file = message ? readText(warp, inst, lane, argument64(warp, site, 1, lane), charBytes) : std::nullopt;
  const auto function = file ? readText(warp, inst, lane, argument64(warp, site, 3, lane), charBytes) : std::nullopt;
  if (!function) return nullptr;
  const auto thread = warp.threadAt(warp.index() * laneCount + static_cast<uint32_t>(lane));
  return warp.fault(Fault::Kind::assertion, inst, lane,
                    *file + ":" + std::to_string(argument64(warp, site, 2, lane)) + ": " + *function + ": block: " +
                        inBrackets(warp.block().index()) + ", thread: " + inBrackets(thread) + " Assertion `" + *message + "` failed.");
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

constexpr BuiltinRow builtinRows[] = {
    {"vprintf", 2, 1, print},
    {"malloc", 1, 1, allocate},
    {"free", 1, 0, release},
    {"__assertfail", 5, 0, assertFail},
    {"cudaGraphSetConditional", 2, 0, setCondition},
};

const BuiltinRow* findRow(std::string_view name) {
  for (const std::span<const BuiltinRow> rows :
       {std::span<const BuiltinRow>(builtinRows), deviceGraphBuiltins(), deviceLaunchBuiltins(), deviceMemoryBuiltins(),
        deviceQueryBuiltins()})
    for (const BuiltinRow& row : rows)
      if (row.name == name) return &row;
  return nullptr;
}

}  // namespace

uint64_t allocateFromHeap(Warp& warp, uint64_t bytes) {
  const Warp::Span* span = heapOf(warp);
  if (!span) return 0;
  const Launch& launch = warp.block().launch();
  const uint64_t offset = Heap(span->host + (launch.heapBase - span->base), launch.heapBytes).allocate(bytes);
  return offset == 0 ? 0 : launch.heapBase + offset;
}

bool releaseToHeap(Warp& warp, uint64_t address) {
  const Warp::Span* span = heapOf(warp);
  const Launch& launch = warp.block().launch();
  return span && Heap(span->host + (launch.heapBase - span->base), launch.heapBytes).release(address - launch.heapBase);
}

bool isBuiltin(std::string_view name) { return findRow(name) != nullptr; }

Handler findBuiltin(std::string_view name, size_t arguments, size_t results) {
  const BuiltinRow* row = findRow(name);
  return row && row->arguments == arguments && row->results == results ? row->handler : nullptr;
}

}  // namespace vgpu::emulator
