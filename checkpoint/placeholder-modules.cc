#include "checkpoint/placeholder-modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace vgpu::checkpoint {

namespace {

constexpr uint64_t half = variableChunk / 2;       // the largest that two of fill a chunk
constexpr uint64_t mostApart = uint64_t{1} << 40;  // more than any device has: what lies there is other memory

std::string placeholderOf(uint64_t bytes) {
  return fmt::format(".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 1 .b8 filler[{}];\n",
                     bytes);
}

}  // namespace

PlaceholderModules::~PlaceholderModules() {
  while (!placeholders.empty()) unload(placeholders.begin());
}

std::optional<uint64_t> PlaceholderModules::load(unsigned device, uint64_t bytes) {
  if (++loads > mostLoads) return std::nullopt;
  on.select(device);
  CUmodule module = nullptr;
  if (on.driver.cuModuleLoadDataEx(&module, placeholderOf(bytes).c_str(), 0, nullptr, nullptr) != CUDA_SUCCESS)
    return std::nullopt;
  CUdeviceptr address = 0;
  size_t size = 0;
  if (on.driver.cuModuleGetGlobal_v2(&address, &size, module, "filler") != CUDA_SUCCESS) {
    on.driver.cuModuleUnload(module);
    return std::nullopt;
  }
  placeholders[address] = {bytes, device, module};
  return address;
}

// PlaceholderModules that lie elsewhere stay: they are in gaps that nobody knew of.
bool PlaceholderModules::loadAt(unsigned device, uint64_t address, uint64_t bytes) {
  std::optional<uint64_t> at;
  do at = load(device, bytes);
  while (at && *at != address);
  return at.has_value();
}

PlaceholderModules::Map::iterator PlaceholderModules::unload(Map::iterator placeholder) {
  on.select(placeholder->second.device);
  on.driver.cuModuleUnload(placeholder->second.module);
  return placeholders.erase(placeholder);
}

void PlaceholderModules::fill(std::map<uint64_t, unsigned> wanted) {
  while (!wanted.empty()) {
    unsigned device = wanted.begin()->second;
    auto at = load(device, half);
    if (!at) return;
    if (loads == 1) std::erase_if(wanted, [&](auto& chunk) { return chunk.first > *at + mostApart; });
    if (wanted.empty() || *at > wanted.rbegin()->first) return;
    auto known = wanted.find(*at);
    if (known != wanted.end() && known->second != device) {  // another device's: the chunk goes, and is made again
      unload(placeholders.find(*at));
      device = known->second;
      at = load(device, half);
      if (!at || *at != known->first) return;
    }
    if (*at % variableChunk == 0 && !loadAt(device, *at + half, half)) return;
    wanted.erase(*at);
  }
}

bool PlaceholderModules::cover(uint64_t begin, uint64_t end) const {
  auto at = placeholders.upper_bound(begin);
  if (at != placeholders.begin()) --at;
  for (; begin < end && at != placeholders.end() && at->first <= begin; ++at) begin = at->first + at->second.bytes;
  return begin >= end;
}

bool PlaceholderModules::cutAt(unsigned device, uint64_t address) {
  auto at = placeholders.upper_bound(address);
  if (at == placeholders.begin()) return true;
  uint64_t begin = (--at)->first, end = begin + at->second.bytes;
  if (address == begin || address >= end) return true;
  if (at->second.device != device) return false;
  unload(at);
  return loadAt(device, begin, address - begin) && loadAt(device, address, end - address);
}

bool PlaceholderModules::cut(unsigned device, uint64_t begin, uint64_t end) {
  return cutAt(device, begin) && cutAt(device, end) && cover(begin, end);
}

void PlaceholderModules::open(uint64_t begin, uint64_t end) {
  for (auto at = placeholders.lower_bound(begin); at != placeholders.end() && at->first < end;) at = unload(at);
}

bool PlaceholderModules::close(unsigned device, uint64_t begin, uint64_t end) {
  while (begin < end && !cover(begin, end)) {
    // A whole chunk takes two, because one would have it to itself.
    uint64_t bytes = end - begin < variableChunk ? end - begin : half;
    if (!loadAt(device, begin, bytes)) return false;
    begin += bytes;
  }
  return true;
}

}  // namespace vgpu::checkpoint
