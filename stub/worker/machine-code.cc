#include "stub/worker/machine-code.h"

#include <cstdlib>
#include <optional>
#include <string_view>

#include "vgpu/image/elf.h"
#include "vgpu/image/fatbinary.h"

namespace vgpu::stub {

namespace {

bool isSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && std::string_view(value) != "0" && *value != 0;
}

bool canRun(unsigned code, unsigned architecture) { return code / 10 == architecture / 10 && code <= architecture; }

}  // namespace

unsigned computeCapability(const Driver& driver, unsigned device) {
  auto ask = [&](CUdevice_attribute which) {
    int value = 0;
    require(driver, driver.cuDeviceGetAttribute(&value, which, driver.device(device)), "querying a device's compute capability");
    return static_cast<unsigned>(value);
  };
  return 10 * ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) + ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

unsigned codeArchitecture(const Driver& driver, unsigned device) {
  bool compilesAll = driver.noteAllocation != nullptr || isSet("CUDA_FORCE_PTX_JIT") || isSet("CUDA_FORCE_JIT");
  return compilesAll ? 0 : computeCapability(driver, device);
}

std::string unpackedCode(std::span<const std::byte> image, unsigned architecture) {
  if (architecture == 0 || !image::isFatbinary(image)) return {};
  image::Fatbinary members(image);
  std::optional<image::Member> best;
  bool isOnly = true;
  while (auto member = members.next()) {
    if (member->kind != image::ptx && member->kind != image::machineCode) return {};
    if (member->kind == image::ptx || !canRun(member->architecture, architecture)) continue;
    if ((member->flags & (image::architectureSpecific | image::familySpecific)) != 0) return {};
    if (best && best->architecture > member->architecture) continue;
    isOnly = !best || best->architecture < member->architecture;
    best = *member;
  }
  std::string code;
  if (!best || !isOnly || !best->isCompressed()) return {};
  auto content = image::contentOf(*best, code);
  if (!content || !image::Elf(std::as_bytes(std::span(*content))).valid()) return {};
  return code;
}

}  // namespace vgpu::stub
