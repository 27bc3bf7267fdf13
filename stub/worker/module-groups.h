// Loads modules with variables so that each variable has the same address after a resume.
//
// A driver packs small variables of several modules into chunks of 2 MiB, wherever there is a gap, and places a chunk, or a large variable,
// at any free address. So the addresses of a module's variables depend on all that was loaded and unloaded before. These rules reduce that
// to what a snapshot can keep:
// - The worker chooses where a chunk is: while a module is loaded, every free piece of the driver's blocks is reserved (gap-filler.h), so
// new chunks lie in blocks that this load makes, and the blocks' addresses are recorded and requested again (driver-addresses.h).
// - Modules loaded one after the other form a group, which shares chunks. Within a group nothing is ever freed: a module that the program
// has unloaded stays in the driver until the last of its group is unloaded. So a group's modules, loaded again in the same order, share
// their chunks in the same way.
// - Groups share no chunk. After a group's first unload the next module begins another group; before that, the gaps in the old group's
// chunks are filled with modules of one variable (placeholders).
// - A library of the GPU's host (stub/worker/libraries.h) loads modules of its own, at moments that no recipe reproduces, and their
// variables share chunks too. So all gaps are filled before a library is first called; before the program's next module, the gaps that the
// library's modules left; and after that module, its own gaps. Filling happens then and not at a library's call, because a call must not
// wait for the GPU, as loading a module may.
// A program that unloads nothing, or everything, pays no memory for this; in the worst case, unloaded modules stay that were loaded between
// two live ones.
//
// Of one GPU, used by its slow calls and by what runs after them (slow-calls.h). A snapshot keeps the groups, with the images of modules
// that the program has unloaded.
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

  // Loads a module with variables by `call`, as the next member of the current group. CUDA's result.
  using Call = std::function<CUresult(CUmodule& real)>;
  CUresult load(uint64_t module, uint64_t blob, uint64_t library, const Call& call, CUmodule& real);
  // The program has unloaded the module, and the device has done its work. False if it belongs to no group. The caller calls endGroups()
  // afterwards.
  bool unload(uint64_t module);
  // Unloads the groups without a live module. CUDA's result.
  CUresult endGroups();
  // Unloads all groups, and removes their modules' handles. CUDA's result.
  CUresult endAll();
  // Whether a library may load modules now: no chunk with free room belongs to the program's modules. Any thread.
  bool mayLibraryLoad() const { return isLibrarysTurn.load(std::memory_order_acquire); }
  // Makes mayLibraryLoad() true: waits for modules that are being loaded, and the first time loads placeholders itself.
  void letLibraryLoad();
  // Whether `blob` is the image of a module that must stay; it is then dropped when that module's group ends.
  bool keepsImage(uint64_t blob);
  // The modules have ended with their context.
  void forget();

  std::set<uint64_t> images() const;
  // Rows of modules by their load order among all GPUs, because the first module of a library places the variables that all of them share.
  using OrderedRows = std::map<uint64_t, Row>;
  void addRows(OrderedRows& modules, Rows& blocks) const;

  // Restore: expect() gives the blocks' addresses in order, then restore() loads module after module, all before the recipes. Throws
  // kj::Exception if a module cannot be loaded. May be repeated with the rows of a later snapshot: only new modules are loaded.
  void expect(const Row& block);
  // Before restore(): the JIT options that the program gave for the module.
  void plan(uint64_t module, std::shared_ptr<JitCall> jit) { planned[module] = std::move(jit); }
  void restore(const Row& module);
  void endRestore();
  // Before restore(): the modules of groups that these rows lack or have differently. The caller unloads each, by unload() or disclaim(),
  // and then calls endGroups().
  std::vector<uint64_t> othersThan(const Rows& modules, const Rows& blocks);
  // Unloads a module that restore() has loaded and no recipe has claimed.
  void disclaim(uint64_t module);
  // The module that restore() has loaded, for the recipe that makes it; null if there is none.
  CUmodule claim(uint64_t module, uint64_t blob);
  void requireClaimed() const;

 private:
  struct Member {
    uint64_t module = 0, blob = 0, library = 0;  // of the program; library: whose modules share variables (SharedModules)
    CUmodule real = nullptr;
    bool live = true;
    uint64_t order = 0;  // load order among the modules of all GPUs
    std::vector<DriverBlock> blocks;  // that loading it has made
  };
  struct Group {
    std::vector<Member> members;
    std::vector<CUmodule> placeholders;
    bool isFull = false;      // nothing more fits into its chunks
    bool isLibrarys = false;  // its modules are a library's own, and unknown
    bool isLive() const;
    bool isWhole() const;  // all members live
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
  bool servesLibrary = false;                             // a library has been called
  std::atomic<bool> isLibrarysTurn{false};                // the last group is a library's, and not full
  std::set<uint64_t> dropped;                             // images to drop when their group ends
  std::map<uint64_t, std::vector<DriverBlock>> expected;  // by the program's module
  std::map<uint64_t, std::shared_ptr<JitCall>> planned;   // likewise; most modules have none
  std::optional<uint64_t> restoredGroup;                  // number in its rows of the group restored last,
  Group* restoring = nullptr;                             // and that group
  std::map<uint64_t, Member> unclaimed;                   // copies, by the program's module
};

// What a snapshot keeps of the groups of all GPUs: rows of moduleGroupKind, in load order, and of moduleBlockKind.
struct SavedGroups {
  Rows modules, blocks;
};
SavedGroups savedGroups(const SessionState& session);

// Rows of moduleGroupKind in the order of their restore: load order. If several devices of the session are one GPU here, device after
// device: a module of another device between those of a group would lie in the group's chunks.
Rows inRestoreOrder(const SessionState& session, Rows modules);

// Before modules are restored: the JIT options from the recipes of these records.
void planModules(SessionState& session, const std::vector<ObjectRecord>& records);

// The images that rows of moduleGroupKind name.
std::set<uint64_t> imagesOfGroups(const Rows& rows);

}  // namespace vgpu::stub
