// Modules with variables, so that each variable is where it was after a resume.
//
// A driver puts small variables of several modules side by side into chunks of 2 MiB, wherever there is a gap, and a chunk, like
// a large variable, where it has addresses free. So where a module's variables lie depends on all that was loaded and unloaded
// before. Three rules make it depend on little that a snapshot can keep:
// - A chunk is at a place of ours: while a module is loaded, every free piece of the driver's blocks is reserved (gap-filler.h), so
//   chunks lie in blocks that this very load has made, and their places are kept and named again (driver-addresses.h).
// - Modules loaded one after the other are a group, which shares chunks. In a group nothing is ever freed: a module that the
//   program has unloaded stays in the driver until the last of its group is unloaded. So a group's modules, loaded again in the
//   same order, share their chunks in the same way.
// - Groups share nothing. After a group's first unload the next module begins another one; before, what is left free in the old
//   one's chunks is filled with modules of one variable.
// - A library of the GPU's host (stub/worker/libraries.h) loads modules of its own, at moments that a recipe does not bring back, and
//   their variables are side by side with others too. So before a library is first called all gaps are filled, before the program's
//   next module those that the library's have left, and behind that module its own: a library's call must not wait for the GPU, as
//   loading a module may.
// A program that unloads nothing, or everything, pays for none of this with memory; what stays loaded at the worst are modules
// that were loaded between two that live.
//
// Of one GPU, used by its slow calls and by what comes behind them (slow-calls.h). A snapshot keeps the groups, with the images of modules that are no more the program's.
#pragma once

#include <cuda.h>

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stub/driver/driver-addresses.h"
#include "stub/worker/kinds/link.h"
#include "stub/worker/placeholder-images.h"
#include "vgpu/objects/object-list.h"
#include "vgpu/objects/state-table.h"

namespace vgpu::stub {

class Execution;
class SessionState;

class ModuleGroups {
 public:
  explicit ModuleGroups(Execution& on);
  ModuleGroups(const ModuleGroups&) = delete;
  ModuleGroups& operator=(const ModuleGroups&) = delete;

  // Loads a module with variables by `call`, in the place that is its turn. CUDA's answer.
  using Call = std::function<CUresult(CUmodule& real)>;
  CUresult load(uint64_t module, uint64_t blob, uint64_t library, const Call& call, CUmodule& real);
  // The program has unloaded it, and the device has done its work: false if it is of no group. endGroups() is to be called then.
  bool unload(uint64_t module);
  // Unloads the groups of which nothing lives. CUDA's answer.
  CUresult endGroups();
  // Unloads all groups, and forgets their modules' handles. CUDA's answer.
  CUresult endAll();
  // Whether a library may load modules: what has room for them is no module's of the program. Any thread.
  bool mayLibraryLoad() const { return isLibrarysTurn.load(std::memory_order_acquire); }
  // Makes it so: waits for modules that are being loaded, and loads some itself the first time.
  void letLibraryLoad();
  // Whether `blob` is of a module that has to stay, and is dropped when that ends.
  bool keepsImage(uint64_t blob);
  // Their context has ended.
  void forget();

  std::set<uint64_t> images() const;
  // Rows of modules by their order among those of all GPUs, since the first of a library places the variables that all of them share.
  using OrderedRows = std::map<uint64_t, Row>;
  void addRows(OrderedRows& modules, Rows& blocks) const;

  // Restore: says where blocks were, one after the other, then loads module after module, all before the recipes. Throws
  // kj::Exception if one cannot be loaded. Again with the rows of a later moment: loads those that are new.
  void expect(const Row& block);
  // Before: the options of the JIT that the program has given for it.
  void plan(uint64_t module, std::shared_ptr<JitCall> jit) { planned[module] = std::move(jit); }
  void restore(const Row& module);
  void endRestore();
  // Before that: the modules of groups that these rows do not have, or have otherwise. Each is to be unloaded, by unload() or
  // disclaim(), and then endGroups() called.
  std::vector<uint64_t> othersThan(const Rows& modules, const Rows& blocks);
  // One that restore() has loaded, and that no recipe has made.
  void disclaim(uint64_t module);
  // The module that restore() has loaded for the recipe that now makes it, null if none was.
  CUmodule claim(uint64_t module, uint64_t blob);
  void requireClaimed() const;

 private:
  struct Member {
    uint64_t module = 0, blob = 0, library = 0;  // the program's; library: with whose modules it shares variables (SharedModules)
    CUmodule real = nullptr;
    bool live = true;
    uint64_t order = 0;  // among those of all GPUs, as they were loaded
    std::vector<DriverBlock> blocks;  // that its loading has made
  };
  struct Group {
    std::vector<Member> members;
    std::vector<CUmodule> placeholders;
    bool isFull = false;      // nothing more fits into its chunks
    bool isLibrarys = false;  // its modules are a library's own, and are not known
    bool isLive() const;
    bool isWhole() const;  // all live
  };
  Group& currentGroup();
  static Member memberOf(const Row& row);
  static bool isBeginningOf(const Group& group, const std::vector<Member>& saved);
  std::vector<std::vector<Member>> groupsOf(const Rows& modules, const Rows& blocks) const;
  void beginLibrarys();
  void fillOthers();
  void fill(Group& group);
  bool fillGap(Group& group, uint64_t bytes, bool& hadGap);
  uint64_t bytesBehind(CUmodule placeholder) const;
  bool isInPlace(const Group& group, const Member& member) const;
  std::vector<CUdeviceptr> addressesOf(const Member& member) const;
  CUresult loadInto(Group& group, Member& member, const Call& call);
  CUresult end(Group& group);
  void releaseImages(const Group& group);

  Execution& on;
  PlaceholderImages placeholders;
  std::list<Group> groups;                                // in the order in which they were begun
  bool servesLibrary = false;                             // one has been called
  std::atomic<bool> isLibrarysTurn{false};                // the last group is a library's, and not full
  std::set<uint64_t> dropped;                             // images that go with their group
  std::map<uint64_t, std::vector<DriverBlock>> expected;  // by the program's module
  std::map<uint64_t, std::shared_ptr<JitCall>> planned;   // likewise; of most there are none
  std::optional<uint64_t> restoredGroup;                  // the last, by the number in its rows,
  Group* restoring = nullptr;                             // and here
  std::map<uint64_t, Member> unclaimed;                   // copies, by the program's module
};

// What a snapshot keeps of the groups of all GPUs: rows of moduleGroupKind, in the order in which modules were loaded, and of
// moduleBlockKind.
struct SavedGroups {
  Rows modules, blocks;
};
SavedGroups savedGroups(const SessionState& session);

// Rows of moduleGroupKind as they are to be restored: in the order in which they were loaded. If several devices are one GPU here, device
// after device: between modules of a group there are none of another device, which would lie in its chunks.
Rows inRestoreOrder(const SessionState& session, Rows modules);

// Before modules are restored: the options that the recipes of these records have for them.
void planModules(SessionState& session, const std::vector<ObjectRecord>& records);

// The images that rows of moduleGroupKind name.
std::set<uint64_t> imagesOfGroups(const Rows& rows);

}  // namespace vgpu::stub
