#include "stub/worker/module-groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "stub/driver/gap-filler.h"
#include "stub/worker/execution.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

namespace {

constexpr uint64_t variableGranule = 256, variableChunk = 2 * MiB;  // docs/emulator.md
constexpr size_t mostPlaceholders = 4096;  // of a group: 13 for each of its chunks, if the driver works as documented
constexpr int mostAttempts = 3;

bool covers(const DriverBlock& block, CUdeviceptr address) {
  return address >= block.address && address - block.address < block.bytes;
}

}  // namespace

ModuleGroups::ModuleGroups(Execution& on) : on(on), placeholders(on.driver) {}

bool ModuleGroups::Group::isLive() const { return std::ranges::any_of(members, &Member::live); }
bool ModuleGroups::Group::isWhole() const { return std::ranges::all_of(members, &Member::live); }

ModuleGroups::Group& ModuleGroups::currentGroup() {
  if (!groups.empty() && groups.back().isWhole() && !groups.back().isFull && !groups.back().isLibrarys) return groups.back();
  for (auto& group : groups) fill(group);
  return groups.emplace_back();
}

// If several devices of the session are one GPU, each device's modules would go into the other's chunks.
void ModuleGroups::fillOthers() {
  for (unsigned device = 0; device < on.session.deviceCount(); ++device) {
    if (device == on.device() || on.driver.device(device) != on.driver.device(on.device())) continue;
    auto& other = on.session.of(device).moduleGroups;
    for (auto& group : other.groups) fill(group);
    other.isLibrarysTurn = false;
  }
}

void ModuleGroups::letLibraryLoad() {
  if (mayLibraryLoad()) return;
  std::lock_guard lock(on.session.moduleLoading);
  if (mayLibraryLoad()) return;
  servesLibrary = true;
  GapFiller filled(on.driver);
  beginLibrarys();
}

void ModuleGroups::beginLibrarys() {
  for (auto& group : groups) fill(group);
  groups.push_back({.members = {}, .placeholders = {}, .isLibrarys = true});
  isLibrarysTurn.store(true, std::memory_order_release);
}

// Loads a module of one variable, to see whether there is a gap for it. If the load needs a new chunk there was none; because every free
// piece of the driver's blocks is reserved, such a load makes the driver map something. False if the driver refuses.
bool ModuleGroups::fillGap(Group& group, uint64_t bytes, bool& hadGap) {
  const void* image = placeholders.of(bytes);
  const uint64_t before = DriverAddresses::mappings();
  CUmodule placeholder = nullptr;
  if (on.driver.cuModuleLoadDataEx(&placeholder, image, 0, nullptr, nullptr) != CUDA_SUCCESS) return false;
  hadGap = DriverAddresses::mappings() == before;
  if (hadGap) group.placeholders.push_back(placeholder);
  else on.driver.cuModuleUnload(placeholder);
  return true;
}

// Fills with the smallest size first, until there is no gap at all. After each of these, the rest of its chunk is mostly one gap, which
// takes one placeholder for each power of two in its length; if it is several gaps, a size that once did not fit is not tried again.
void ModuleGroups::fill(Group& group) {
  if (group.isFull || !DriverAddresses::ofProcess().areAsked()) return;
  BlockPlacement placement;
  uint64_t largest = variableChunk / 2;
  while (group.placeholders.size() < mostPlaceholders) {
    bool hadGap = false;
    if (!fillGap(group, variableGranule, hadGap)) return;
    if (!hadGap) break;
    const uint64_t rest = bytesBehind(group.placeholders.back());
    for (uint64_t bytes = largest; bytes >= variableGranule; bytes /= 2) {
      if ((rest & bytes) == 0) continue;
      if (!fillGap(group, bytes, hadGap)) return;
      if (!hadGap) largest = bytes / 2;
    }
  }
  group.isFull = true;
}

// From the end of a placeholder of the smallest size to the end of its chunk.
uint64_t ModuleGroups::bytesBehind(CUmodule placeholder) const {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (on.driver.cuModuleGetGlobal_v2(&address, &bytes, placeholder, PlaceholderImages::variable) != CUDA_SUCCESS) return 0;
  return variableChunk - address % variableChunk - variableGranule;
}

std::vector<CUdeviceptr> ModuleGroups::addressesOf(const Member& member) const {
  std::vector<CUdeviceptr> addresses;
  if (auto* blob = on.blobs.find(member.blob))
    for (auto& name : blob->facts().variables) {
      CUdeviceptr address = 0;
      size_t bytes = 0;
      if (on.driver.cuModuleGetGlobal_v2(&address, &bytes, member.real, name.c_str()) == CUDA_SUCCESS)
        addresses.push_back(address);
    }
  return addresses;
}

// Whether all variables are in blocks that the group's loads have made. A module that shares variables counts as in place, because it
// cannot be loaded a second time.
bool ModuleGroups::isInPlace(const Group& group, const Member& member) const {
  return member.library != 0 || std::ranges::all_of(addressesOf(member), [&](CUdeviceptr address) {
    auto isOf = [&](const Member& each) {
      return std::ranges::any_of(each.blocks, [&](auto& block) { return covers(block, address); });
    };
    return isOf(member) || std::ranges::any_of(group.members, isOf);
  });
}

// Repeats the load if variables are outside these blocks: another thread may have freed a piece meanwhile, and a chunk went there.
// Managed variables are always outside: a load with the same addresses as the one before is accepted.
CUresult ModuleGroups::loadInto(Group& group, Member& member, const Call& call) {
  std::vector<CUdeviceptr> before;
  for (int attempt = 1;; ++attempt) {
    BlockPlacement placement;
    if (CUresult error = call(member.real)) return error;
    member.blocks = placement.blocks();
    if (attempt == mostAttempts || !DriverAddresses::ofProcess().areAsked() || isInPlace(group, member)) return CUDA_SUCCESS;
    auto addresses = addressesOf(member);
    if (addresses == before) return CUDA_SUCCESS;
    before = std::move(addresses);
    on.driver.cuModuleUnload(member.real);
  }
}

CUresult ModuleGroups::load(uint64_t module, uint64_t blob, uint64_t library, const Call& call, CUmodule& real) {
  GapFiller filled(on.driver);
  isLibrarysTurn.store(false, std::memory_order_relaxed);  // a library that reads the old value loads modules at the same time, as it could
                                                           // before
  fillOthers();
  Group& group = currentGroup();
  Member member{.module = module, .blob = blob, .library = library, .order = ++on.session.modulesLoaded};
  CUresult result = loadInto(group, member, call);
  if (result == CUDA_SUCCESS) {
    real = member.real;
    group.members.push_back(std::move(member));
  } else if (group.members.empty()) {
    groups.remove_if([&](auto& each) { return &each == &group; });
  }
  if (servesLibrary) {
    filled.reserveFree();  // of the block that this load has made: only its chunk's gap must be filled
    beginLibrarys();
  }
  return result;
}

bool ModuleGroups::unload(uint64_t module) {
  for (auto& group : groups)
    for (auto& member : group.members)
      if (member.live && member.module == module) {
        member.live = false;
        return true;
      }
  return false;
}

CUresult ModuleGroups::end(Group& group) {
  CUresult result = CUDA_SUCCESS;
  auto unloadReal = [&](CUmodule real) {
    if (CUresult error = on.session.sharedModules.unload(real)) result = error;
  };
  for (auto& member : group.members) unloadReal(member.real);
  for (CUmodule placeholder : group.placeholders) unloadReal(placeholder);
  releaseImages(group);
  return result;
}

void ModuleGroups::releaseImages(const Group& group) {
  for (auto& member : group.members)
    if (dropped.erase(member.blob) > 0) on.blobs.drop(member.blob);
}

CUresult ModuleGroups::endGroups() {
  CUresult result = CUDA_SUCCESS;
  groups.remove_if([&](Group& group) {
    if (group.isLive() || group.isLibrarys) return false;
    if (CUresult error = end(group)) result = error;
    return true;
  });
  return result;
}

CUresult ModuleGroups::endAll() {
  for (auto& group : groups)
    for (auto& member : group.members)
      if (std::exchange(member.live, false)) on.handles.remove(api::Kind::MODULE, member.module);
  return endGroups();
}

bool ModuleGroups::keepsImage(uint64_t blob) {
  if (!images().contains(blob)) return false;
  dropped.insert(blob);
  return true;
}

void ModuleGroups::forget() {
  for (auto& group : groups) {
    for (auto& member : group.members) on.session.sharedModules.forget(member.real);
    releaseImages(group);
  }
  groups.clear();
  isLibrarysTurn = false;
}

std::set<uint64_t> ModuleGroups::images() const {
  std::set<uint64_t> numbers;
  for (auto& group : groups)
    for (auto& member : group.members) numbers.insert(member.blob);
  return numbers;
}

}  // namespace vgpu::stub
