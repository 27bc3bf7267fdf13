// Saving and restoring groups of modules.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "stub/driver/gap-filler.h"
#include "stub/worker/execution.h"
#include "stub/worker/module-groups.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

// A row of modules: group, module, image, whether the program still has it, library; a row of blocks: module, address, bytes.
void ModuleGroups::addRows(OrderedRows& modules, Rows& blocks) const {
  uint64_t number = 0;
  for (auto& group : groups) {
    for (auto& member : group.members) {
      modules[member.order] = {number, member.module, member.blob, uint64_t{member.live}, member.library};
      for (auto& block : member.blocks) blocks.push_back({member.module, block.address, block.bytes});
    }
    ++number;
  }
}

void ModuleGroups::expect(const Row& block) { expected[numberIn(block, 0)].push_back({numberIn(block, 1), numberIn(block, 2)}); }

// Without the driver's handle.
ModuleGroups::Member ModuleGroups::memberOf(const Row& row) {
  return {.module = numberIn(row, 1), .blob = numberIn(row, 2), .library = numberIn(row, 4), .live = numberIn(row, 3) != 0};
}

// The groups of this device as the rows describe them.
std::vector<std::vector<ModuleGroups::Member>> ModuleGroups::groupsOf(const Rows& modules, const Rows& blocks) const {
  std::map<uint64_t, std::vector<DriverBlock>> places;
  for (auto& block : blocks) places[numberIn(block, 0)].push_back({numberIn(block, 1), numberIn(block, 2)});
  std::vector<std::vector<Member>> saved;
  std::optional<uint64_t> last;
  for (auto& row : modules) {
    Member member = memberOf(row);
    if (handleDevice(member.module) != on.device()) continue;
    if (last != numberIn(row, 0)) saved.emplace_back();
    last = numberIn(row, 0);
    member.blocks = places[member.module];
    saved.back().push_back(std::move(member));
  }
  return saved;
}

// A group that has been filled has no room for further modules.
bool ModuleGroups::isBeginningOf(const Group& group, const std::vector<Member>& saved) {
  auto isSame = [](const Member& here, const Member& there) {
    return here.module == there.module && here.blob == there.blob && here.library == there.library && here.blocks == there.blocks;
  };
  return group.members.size() <= saved.size() && (!group.isFull || group.members.size() == saved.size()) &&
         std::equal(group.members.begin(), group.members.end(), saved.begin(), isSame);
}

// A group that has ended since does not affect the groups after it. A group that differs from the saved one does, because each group is
// placed at addresses that the earlier ones left free.
std::vector<uint64_t> ModuleGroups::othersThan(const Rows& modules, const Rows& blocks) {
  expected.clear();
  restoredGroup.reset();
  auto saved = groupsOf(modules, blocks);
  auto next = saved.begin();
  bool isInOrder = true;
  std::vector<uint64_t> others;
  for (auto& group : groups) {
    if (group.isLibrarys) continue;
    auto found = std::find_if(next, saved.end(), [&](auto& members) { return members.front().module == group.members.front().module; });
    if (isInOrder && found != saved.end() && isBeginningOf(group, *found)) {
      next = std::next(found);
      continue;
    }
    isInOrder = isInOrder && found == saved.end();
    for (auto& member : group.members) {
      if (member.live) others.push_back(member.module);
      dropped.erase(member.blob);  // the image may belong to a module that is loaded anew
    }
  }
  return others;
}

void ModuleGroups::disclaim(uint64_t module) {
  if (unclaimed.erase(module) > 0) unload(module);
}

void ModuleGroups::restore(const Row& row) {
  uint64_t number = numberIn(row, 0);
  Member member = memberOf(row);
  for (auto& group : groups)
    if (std::ranges::find(group.members, member.module, &Member::module) != group.members.end()) {
      restoredGroup = number;
      restoring = &group;
      if (member.live) return;
      disclaim(member.module);
      dropped.insert(member.blob);
      return;
    }
  auto* blob = on.blobs.find(member.blob);
  if (blob == nullptr || !blob->facts().problem.empty())
    fail(fmt::format("the snapshot has no usable image {:#x}, from which the module {:#x} is loaded", member.blob, member.module));
  GapFiller filled(on.driver);
  isLibrarysTurn = false;
  if (restoredGroup != number) {
    fillOthers();
    for (auto& other : groups) fill(other);
    restoring = &groups.emplace_back();
    restoredGroup = number;
  }
  BlockPlacement placement(std::move(expected[member.module]));
  const std::shared_ptr<JitCall> options = planned[member.module];
  SharedModules::Jit jit;
  if (options != nullptr) jit = {options->ownCount(), options->ownOptions(), options->ownValues()};
  CUresult result = on.session.sharedModules.load(member.library, blob->bytes().data(), blob->facts().variables, jit, member.real);
  if (result != CUDA_SUCCESS)
    fail(fmt::format("the module {:#x} cannot be loaded again on {}: {}{}", member.module, on.session.nameOf(on.device()),
                     nameOf(on.driver, result), lacksCode(result)));
  member.blocks = placement.blocks();
  member.order = ++on.session.modulesLoaded;
  if (!member.live)
    dropped.insert(member.blob);
  else if (!unclaimed.emplace(member.module, member).second)
    fail(fmt::format("the snapshot has the module {:#x} twice", member.module));
  restoring->members.push_back(std::move(member));
}

void ModuleGroups::endRestore() {
  planned.clear();
  if (!servesLibrary || mayLibraryLoad()) return;
  GapFiller filled(on.driver);
  beginLibrarys();
}

CUmodule ModuleGroups::claim(uint64_t module, uint64_t blob) {
  auto found = unclaimed.find(module);
  if (found == unclaimed.end() || found->second.blob != blob) return nullptr;
  CUmodule real = found->second.real;
  unclaimed.erase(found);
  return real;
}

void ModuleGroups::requireClaimed() const {
  if (!unclaimed.empty())
    fail(fmt::format("the snapshot has the module {:#x}, which none of its objects creates", unclaimed.begin()->first));
}

SavedGroups savedGroups(const SessionState& session) {
  SavedGroups saved;
  ModuleGroups::OrderedRows modules;
  for (unsigned device = 0; device < session.deviceCount(); ++device) session.of(device).moduleGroups.addRows(modules, saved.blocks);
  for (auto& [order, row] : modules) saved.modules.push_back(std::move(row));
  return saved;
}

Rows inRestoreOrder(const SessionState& session, Rows modules) {
  auto deviceOf = [](const Row& module) { return handleDevice(numberIn(module, 1)); };
  std::map<CUdevice, unsigned> devices;
  bool areOneGpu = std::ranges::any_of(modules, [&](const Row& module) {
    return devices.try_emplace(session.driver.device(deviceOf(module)), deviceOf(module)).first->second != deviceOf(module);
  });
  if (areOneGpu) std::ranges::stable_sort(modules, {}, deviceOf);
  return modules;
}

void planModules(SessionState& session, const std::vector<ObjectRecord>& records) {
  for (auto& record : records)
    for (auto& frame : record.recipe) {
      if (frame.method != api::Method::moduleLoad) continue;
      api::FrameReader<api::Cuda::ModuleLoadParams> load(frame.words);
      if (load.getOptions().size() == 0 || handleDevice(load.getModule()) >= session.deviceCount()) continue;
      session.of(handleDevice(load.getModule())).moduleGroups.plan(load.getModule(),
                                                                   std::make_shared<JitCall>(load.getOptions(), load.getValues()));
    }
}

std::set<uint64_t> imagesOfGroups(const Rows& rows) {
  std::set<uint64_t> images;
  for (auto& row : rows) images.insert(numberIn(row, 2));
  return images;
}

}  // namespace vgpu::stub
