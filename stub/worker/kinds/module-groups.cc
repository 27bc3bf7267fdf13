// Modules with variables, which are kept in groups (stub/worker/module-groups.h): rows of the groups, and of the driver's blocks in which
// they lie.
#include "stub/worker/module-groups.h"

#include "stub/worker/execution.h"
#include "stub/worker/kinds/kind.h"

namespace vgpu::stub {

namespace {

bool isValidModule(const Row& row, uint64_t devices) {
  unsigned device = handleDevice(numberIn(row, 1));
  return device < devices && handleDevice(numberIn(row, 2)) == device && numberIn(row, 3) <= 1;
}

bool isValidBlock(const Row& row, uint64_t devices) {
  uint64_t address = numberIn(row, 1), bytes = numberIn(row, 2);
  return handleDevice(numberIn(row, 0)) < devices && inModuleBlocks(address) && address % driverBlockBytes == 0 &&
         bytes >= driverBlockBytes && bytes <= moduleBlocksBase + moduleBlocksBytes - address;
}

void expectBlocks(SessionState& session, const Rows& rows) {
  for (auto& row : rows) session.of(handleDevice(numberIn(row, 0))).moduleGroups.expect(row);
}

void restoreModules(SessionState& session, const Rows& rows) {
  for (auto& row : inRestoreOrder(session, rows)) session.select(handleDevice(numberIn(row, 1))).moduleGroups.restore(row);
  for (unsigned device : session.usedDevices()) session.select(device).moduleGroups.endRestore();
}

void requireClaimed(SessionState& session, const Rows&) {
  for (unsigned device = 0; device < session.deviceCount(); ++device) session.of(device).moduleGroups.requireClaimed();
}

}  // namespace

const KindModule moduleBlockKind{.name = "blocks",
                                 .columns = "nnn",
                                 .isValid = isValidBlock,
                                 .save = [](SessionState& session) { return savedGroups(session).blocks; },
                                 .prepare = expectBlocks};

const KindModule moduleGroupKind{.name = "modules",
                                 .drop = [](Execution& on) { on.moduleGroups.forget(); },
                                 .destroy = [](Execution& on) { return on.moduleGroups.endAll(); },
                                 .columns = "nnnnn",
                                 .isValid = isValidModule,
                                 .save = [](SessionState& session) { return savedGroups(session).modules; },
                                 .prepare = restoreModules,
                                 .compare = requireClaimed};

}  // namespace vgpu::stub
