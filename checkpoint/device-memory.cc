#include "checkpoint/device-memory.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "checkpoint/arrays.h"
#include "vgpu/base/fail.h"

namespace vgpu::checkpoint {

namespace {

bool comesFirst(const MemoryRange& a, const MemoryRange& b) {
  return std::tie(a.device, a.address, a.bytes) < std::tie(b.device, b.address, b.bytes);
}

// Small allocations lie side by side, each on its own 512 bytes: with those, they join.
std::vector<MemoryRange> allocationsOf(const stub::Execution& on) {
  std::vector<MemoryRange> ranges, joined;
  for (auto [address, bytes] : on.handles.of(api::Kind::MEMORY)) {
    uint64_t whole = roundUp(bytes, allocationAlignment);
    uint64_t device = (address - deviceArenaBase) / deviceArenaBytes;
    ranges.push_back({device, address, on.pool.ownsDevice(address, whole) ? whole : bytes});
  }
  std::sort(ranges.begin(), ranges.end(), comesFirst);
  for (auto& range : ranges) {
    if (!joined.empty() && joined.back().device == range.device &&
        range.address <= joined.back().address + joined.back().bytes) {
      auto& last = joined.back();
      last.bytes = std::max(last.address + last.bytes, range.address + range.bytes) - last.address;
    } else if (range.bytes > 0) {
      joined.push_back(range);
    }
  }
  return joined;
}

}  // namespace

std::vector<MemoryRange> memoryOf(const stub::Execution& on, const std::vector<SavedVariable>& saved) {
  std::vector<MemoryRange> ranges = allocationsOf(on), variables;
  for (auto& variable : saved)
    if (variable.bytes > 0) variables.push_back({handleDevice(variable.module), variable.address, variable.bytes});
  std::sort(variables.begin(), variables.end(), comesFirst);
  variables.erase(std::unique(variables.begin(), variables.end()), variables.end());  // several names for one
  ranges.insert(ranges.end(), variables.begin(), variables.end());
  return ranges;
}

std::vector<SavedVariable> variablesOf(stub::Execution& on) {
  std::vector<SavedVariable> variables;
  auto add = [&](const stub::ModuleVariable& v) { variables.push_back({v.module, v.name, v.address, v.bytes}); };
  for (auto& [handle, variable] : on.variables) add(variable);
  for (auto& variable : on.allVariables()) add(variable);
  std::sort(variables.begin(), variables.end(),
            [](auto& a, auto& b) { return std::tie(a.module, a.symbol) < std::tie(b.module, b.symbol); });
  variables.erase(std::unique(variables.begin(), variables.end()), variables.end());
  return variables;
}

uint64_t bytesOf(const std::vector<MemoryRange>& ranges) {
  uint64_t bytes = 0;
  for (auto& range : ranges) bytes += range.bytes;
  return bytes;
}

ChunkPlan planOf(const std::vector<MemoryRange>& ranges, const std::vector<SavedArray>& arrays) {
  std::vector<uint64_t> sizes;
  for (auto& range : ranges) sizes.push_back(range.bytes);
  for (auto& array : arrays) sizes.push_back(array.bytes);
  return ChunkPlan(std::move(sizes));
}

void saveMemory(stub::Execution& on, Pipeline& pipeline, FileWriter& file, const std::vector<MemoryRange>& ranges,
                const std::vector<SavedArray>& arrays, const Moved& moved) {
  writeChunks(pipeline, file, planOf(ranges, arrays), [&](const Piece& piece, std::byte* out) {
    if (piece.item < ranges.size()) {
      auto& range = ranges[piece.item];
      on.select(static_cast<unsigned>(range.device));
      stub::require(on.driver, on.driver.cuMemcpyDtoH_v2(out, range.address + piece.offset, piece.bytes),
                    "copying the device's memory");
    } else {
      saveArray(on, arrays[piece.item - ranges.size()], piece.offset, out, piece.bytes);
    }
    moved(piece.bytes);
  });
}

void restoreMemory(stub::Execution& on, Pipeline& pipeline, FileReader& file, const std::vector<MemoryRange>& ranges,
                   const std::vector<SavedArray>& arrays, const std::vector<SavedVariable>& variables,
                   const Moved& moved) {
  std::set<std::pair<uint64_t, uint64_t>> places;
  for (auto& variable : variables) places.emplace(variable.address, variable.bytes);
  for (auto& range : ranges)
    if (range.device >= on.deviceCount() ||
        !(places.contains({range.address, range.bytes}) || on.ownsMemory(range.address, range.bytes)))
      file.refuse(fmt::format("range: {} bytes at {:#x} of device {} belong to no object of the snapshot", range.bytes,
                              range.address, range.device));
  readChunks(pipeline, file, planOf(ranges, arrays), [&](const Piece& piece, const std::byte* bytes) {
    if (piece.item < ranges.size()) {
      auto& range = ranges[piece.item];
      on.select(static_cast<unsigned>(range.device));
      uint64_t address = range.address + piece.offset;
      CUresult result = bytes == nullptr ? on.driver.cuMemsetD8Async(address, 0, piece.bytes, nullptr)
                                         : on.driver.cuMemcpyHtoD_v2(address, bytes, piece.bytes);
      stub::require(on.driver, result, "copying to the device's memory");
    } else {
      restoreArray(on, arrays[piece.item - ranges.size()], piece.offset, bytes, piece.bytes);
    }
    moved(piece.bytes);
  });
  stub::require(on.driver, on.synchronize(), "copying to the device's memory");
}

void requireSameAddresses(const std::vector<SavedVariable>& variables, const std::vector<SavedVariable>& here) {
  std::map<std::pair<uint64_t, std::string_view>, const SavedVariable*> byName;
  for (auto& variable : here) byName.emplace(std::pair(variable.module, std::string_view(variable.symbol)), &variable);
  for (auto& saved : variables) {
    auto found = byName.find({saved.module, saved.symbol});
    if (found == byName.end())
      fail(fmt::format("the snapshot keeps the variable {}, which no object of it makes", saved.symbol));
    auto& now = *found->second;
    if (now.address != saved.address || now.bytes != saved.bytes)
      fail(
          fmt::format("the variable {} lies at {:#x} ({} bytes) on this device, and the program knows it at {:#x} ({} "
                      "bytes): the driver placed its module elsewhere, so this snapshot cannot be resumed here",
                      saved.symbol, now.address, now.bytes, saved.address, saved.bytes));
  }
}

}  // namespace vgpu::checkpoint
