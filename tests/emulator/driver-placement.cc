// Addresses of modules' variables, compared with an H200's driver (580.159).
#include <map>

#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

constexpr uint64_t chunk = uint64_t{2} << 20;

// A module with a variable `room` of some size and a small one behind it in the text.
std::string imageOf(uint64_t roomBytes) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 256 .b8 room[" +
         std::to_string(roomBytes) + "];\n.visible .global .align 4 .u32 number = 7;\n";
}

struct Step {
  unsigned module;
  uint64_t bytes;         // of its variable `room`; 0: unloads it
  uint64_t room, number;  // offsets in their chunks
};

CUdeviceptr addressOf(CUmodule module, const char* name) {
  CUdeviceptr address = 0;
  REQUIRE_CUDA(cuModuleGetGlobal(&address, nullptr, module, name));
  return address;
}

}  // namespace

TEST_CASE("variables of modules that are loaded and unloaded lie where an H200 has them") {
  const Step recorded[] = {
      {0, 1000, 0, 0x400},
      {1, 3 << 20, 0, 0x500},
      {2, 100 << 10, 0x600, 0x19600},
      {3, 5 << 20, 0, 0x19700},
      {4, 1 << 20, 0x19800, 0x119800},
      {5, 64, 0x119900, 0x119a00},
      {6, 2 << 20, 0, 0x119b00},
      {7, 9 << 20, 0, 0x119c00},
      {1, 0, 0, 0},
      {4, 0, 0, 0},
      {6, 0, 0, 0},
      {10, 51400, 0x119d00, 0x500},  // behind the others, not in the first gap: in the smallest gap that is large enough
      {11, 2621640, 0, 0x119b00},
      {12, 524488, 0x126600, 0x1a6700},
      {13, 232, 0x1a6800, 0x1a6900},
      {0, 0, 0, 0},
      {11, 0, 0, 0},
      {7, 0, 0, 0},
      {4, 1 << 20, 0x19800, 0x119800},
      {1, 3 << 20, 0, 0x119b00},
      {0, 1000, 0, 0x119c00},  // of two equal gaps, the older one
  };
  Device device;
  std::map<unsigned, CUmodule> modules;
  for (const Step& step : recorded) {
    CAPTURE(step.module);
    if (step.bytes == 0) {
      REQUIRE_CUDA(cuModuleUnload(modules.at(step.module)));
      continue;
    }
    const CUmodule module = modules[step.module] = device.load(imageOf(step.bytes).c_str());
    CHECK_EQ(addressOf(module, "room") % chunk, step.room);
    CHECK_EQ(addressOf(module, "number") % chunk, step.number);
  }
}

TEST_CASE("each variable has its own place, constants together and first") {
  Device device;
  const CUmodule module = device.load(
      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .const .align 4 .b8 c1[4];\n"
      ".visible .global .align 4 .u32 u1;\n.visible .const .align 4 .b8 c2[1000];\n"
      ".visible .global .align 4 .u32 i1 = 1;\n");
  const CUdeviceptr base = addressOf(module, "c1");
  CHECK_EQ(addressOf(module, "c2") - base, 4);
  CHECK_EQ(addressOf(module, "u1") - base, 0x400);
  CHECK_EQ(addressOf(module, "i1") - base, 0x500);
}

TEST_CASE("a variable that fits in no chunk gets a new one; others may use the rest, unless the variable is large") {
  Device device;
  const auto load = [&](uint64_t bytes) {
    const std::string image =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .b8 v[" + std::to_string(bytes) + "];\n";
    return addressOf(device.load(image.c_str()), "v");
  };
  const CUdeviceptr first = load(1200 << 10), second = load(1100 << 10), large = load(3 << 20);
  CHECK_EQ(second, first + chunk);
  CHECK_EQ(large, second + chunk);
  CHECK_EQ(load(900 << 10), second + (1100 << 10));
  CHECK_EQ(load(1000 << 10), large + 2 * chunk);
}

TEST_CASE("a variable's chunk and a reservation without a requested address come from the same blocks") {
  Device device;
  const auto load = [&] { return addressOf(device.load(imageOf(1900 << 10).c_str()), "room"); };
  CUdeviceptr reserved = 0, inBlock = 0;
  const CUdeviceptr first = load();
  REQUIRE_CUDA(cuMemAddressReserve(&reserved, chunk, 0, 0, 0));
  const CUdeviceptr second = load();
  CHECK_EQ(reserved, first + chunk);
  CHECK_EQ(second, reserved + chunk);
  REQUIRE_CUDA(cuMemAddressFree(reserved, chunk));
  REQUIRE_CUDA(cuMemAddressReserve(&inBlock, chunk, 0, 0, 0));
  CHECK_EQ(inBlock, reserved);  // the smallest gap
  REQUIRE_CUDA(cuMemAddressFree(inBlock, chunk));
}
