// A module placed in a flat device memory, for tests of the PTX interpreter.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <span>

#include "stub/emulator/ptx/module.h"
#include "stub/emulator/ptx/run/interpreter.h"

namespace vgpu::emulator {

class FlatMemory : public Memory {
 public:
  uint64_t allocate(uint64_t bytes) {
    const uint64_t base = next;
    next += (bytes + 4095) / 4096 * 4096 + 4096;  // a page between allocations that belongs to none
    regions[base].reserve((bytes + 3) / 4 * 4);  // atomic operations may access the rest of the last word
    regions[base].resize(bytes);
    return base;
  }
  std::byte* host(uint64_t address) {
    auto region = std::prev(regions.upper_bound(address));
    return region->second.data() + (address - region->first);
  }
  void protect(uint64_t base) { readOnly = base; }

  std::optional<Region> find(uint64_t address) const override {
    auto region = regions.upper_bound(address);
    if (region == regions.begin()) return std::nullopt;
    --region;
    if (address - region->first >= region->second.size()) return std::nullopt;
    return Region{region->first, region->second.size(), const_cast<std::byte*>(region->second.data()),
                  region->first != readOnly};
  }
  std::string describe(uint64_t) const override { return "no allocation is near it"; }

 private:
  uint64_t next = 0x200000000000;
  std::map<uint64_t, std::vector<std::byte>> regions;
  uint64_t readOnly = 0;
};

// A module and its memory. Arrays are typed device addresses.
class Device {
 public:
  explicit Device(std::string_view ptx, int architecture = 90) : module(Module::parse(ptx, architecture)) {
    image = memory.allocate(std::max<uint64_t>(module->imageBytes(), 1));
    module->placeTogether(image, memory.host(image));
  }

  template <class T>
  uint64_t upload(const std::vector<T>& values) {
    const uint64_t address = memory.allocate(std::max<size_t>(values.size() * sizeof(T), 1));
    std::ranges::copy(std::as_bytes(std::span(values)), memory.host(address));
    return address;
  }
  template <class T>
  std::vector<T> download(uint64_t address, size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), memory.host(address), count * sizeof(T));
    return values;
  }
  uint64_t variable(std::string_view name) {
    for (const Variable& variable : module->variables())
      if (variable.name == name) return module->addressOf(variable);
    FAIL("no such variable");
    return 0;
  }

  struct Shape {
    std::array<uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1};
  };
  template <class... A>
  std::optional<Fault> tryLaunch(std::string_view name, Shape shape, A... arguments) {
    const Kernel* kernel = module->findKernel(name);
    REQUIRE(kernel);
    const auto declared = parametersOf(*kernel);
    REQUIRE(declared.size() == sizeof...(A));
    std::vector<std::byte> block;
    [[maybe_unused]] size_t index = 0;
    [[maybe_unused]] const auto add = [&](const auto& value) {
      const Parameter& parameter = declared[index++];
      REQUIRE(sizeof value == parameter.bytes);
      block.resize(std::max<size_t>(block.size(), parameter.offset + parameter.bytes));
      std::memcpy(&block[parameter.offset], &value, sizeof value);
    };
    (add(arguments), ...);
    launch.kernel = kernel;
    launch.grid = shape.grid;
    launch.block = shape.block;
    launch.parameters = block;
    launch.memory = &memory;
    return run(launch, output);
  }
  template <class... A>
  void operator()(std::string_view name, Shape shape, A... arguments) {
    const auto fault = tryLaunch(name, shape, arguments...);
    if (fault) FAIL(fault->report);
  }

  FlatMemory memory;
  std::shared_ptr<Module> module;
  uint64_t image = 0;
  Launch launch{};
  std::string output;
};

// PTX of one kernel `k` around `body`, with the header of a module.
inline std::string kernelText(std::string_view parameters, std::string_view body, std::string_view before = "") {
  return ".version 9.0\n.target sm_75\n.address_size 64\n" + std::string(before) + "\n.visible .entry k(" +
         std::string(parameters) + ")\n{\n" + std::string(body) + "\n}\n";
}

}  // namespace vgpu::emulator
