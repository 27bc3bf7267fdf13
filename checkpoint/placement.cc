#include "checkpoint/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "checkpoint/placeholder-modules.h"
#include "stub/worker/execution.h"
#include "stub/worker/kinds/module.h"
#include "vgpu/base/fail.h"

namespace vgpu::checkpoint {

namespace {

constexpr int mostAttempts = 32;  // to put one module in its place

using Variables = std::vector<const stub::ModuleVariable*>;

// A module that has to be where it was.
struct Placed {
  const ObjectRecord* record;
  Variables variables;  // those of which somebody knows an address
  unsigned device() const { return record->device; }
};

// Variables of a module side by side, and the gap that it finds there. All variables of a run came into one gap, from
// its beginning on.
struct Run {
  uint64_t begin, used, end;
  bool isWholeChunks() const { return end - begin >= variableChunk; }
};

uint64_t pieceEnd(const stub::ModuleVariable& variable) {
  uint64_t granule = variable.bytes >= variableChunk ? variableChunk : variableGranule;
  return roundUp(variable.address + variable.bytes, granule);
}

std::vector<Run> runsOf(const Placed& module) {
  std::vector<Run> runs;
  auto sorted = module.variables;
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->address < b->address; });
  for (auto* variable : sorted) {
    uint64_t begin = variable->address / variableGranule * variableGranule, end = pieceEnd(*variable);
    uint64_t last = runs.empty() ? 0 : runs.back().end;
    if (begin < last || (begin == last && begin % variableChunk != 0))
      runs.back().used = runs.back().end = std::max(last, end);
    else
      runs.push_back({begin, end, end});
  }
  return runs;
}

class Placement {
 public:
  explicit Placement(stub::SessionState& on) : on(on) {}

  void load(const Placed& module) {
    const RecordedFrame& frame = module.record->recipe.front();
    stub::Reply reply;
    CUresult result = on.execute(frame.method, frame.device, frame.words, frame.position, 0, reply);
    if (result != CUDA_SUCCESS)
      fail(fmt::format("the module {:#x} cannot be loaded again on this device: {}", module.record->id.handle,
                       stub::nameOf(on.driver, result)));
    loaded.push_back(&module);
  }
  void unload(const Placed& module) {
    on.select(module.device());
    on.driver.cuModuleUnload(realOf(module));
    stub::Execution& gpu = on.of(module.device());
    gpu.handles.remove(api::Kind::MODULE, module.record->id.handle);
    gpu.modules.blobs.erase(module.record->id.handle);
    std::erase(loaded, &module);
  }
  void unloadAll() {
    while (!loaded.empty()) unload(*loaded.back());
  }
  bool isInPlace(const Placed& module) {
    return std::all_of(module.variables.begin(), module.variables.end(),
                       [&](auto* variable) { return addressOf(module, *variable) == variable->address; });
  }
  // Whether its variables are as large as they are said to be: a manifest is not trusted.
  bool hasVariables(const Placed& module) {
    return std::all_of(module.variables.begin(), module.variables.end(),
                       [&](auto* variable) { return find(module, *variable).bytes == variable->bytes; });
  }
  // With nothing loaded. Whether each lies in place now.
  bool loadAmongPlaceholders(const std::vector<Placed>& modules) {
    PlaceholderModules placeholders(on);
    std::map<uint64_t, unsigned> chunks;
    for (auto& module : modules)
      for (auto& run : runsOf(module))
        for (uint64_t at = run.begin / variableChunk * variableChunk; at < run.end; at += variableChunk)
          chunks[at] = module.device();
    placeholders.fill(chunks);
    return std::all_of(modules.begin(), modules.end(), [&](auto& module) { return loadInPlace(placeholders, module); });
  }

 private:
  CUmodule realOf(const Placed& module) const {
    return fromWire<CUmodule>(on.of(module.device()).handles.get(api::Kind::MODULE, module.record->id.handle));
  }
  struct Found {
    CUdeviceptr address = 0;
    size_t bytes = 0;
  };
  Found find(const Placed& module, const stub::ModuleVariable& variable) {
    Found found;
    on.select(module.device());
    on.driver.cuModuleGetGlobal_v2(&found.address, &found.bytes, realOf(module), variable.name.c_str());
    return found;
  }
  uint64_t addressOf(const Placed& module, const stub::ModuleVariable& variable) { return find(module, variable).address; }
  bool loadInPlace(PlaceholderModules& placeholders, const Placed& module);
  Variables inOrder(const Placed& module);
  bool widen(const PlaceholderModules& placeholders, const Placed& module, const Variables& variables, std::vector<Run>& runs,
             bool mayReorder);

  stub::SessionState& on;
  std::vector<const Placed*> loaded;
};

// The gaps that the module found are known but for their size and age, which only matter where it found several. They
// begin as large as what it put there, and grow by what the driver does with them.
bool Placement::loadInPlace(PlaceholderModules& placeholders, const Placed& module) {
  auto runs = runsOf(module);
  std::erase_if(runs, [&](auto& run) { return !placeholders.cover(run.begin, run.end); });  // not in this memory: managed
  auto order = runs.size() > 1 ? inOrder(module) : module.variables;
  for (int attempt = 0; attempt < mostAttempts; ++attempt) {
    for (auto& run : runs)
      if (!placeholders.cut(module.device(), run.begin, run.end)) return false;
    for (auto& run : runs) placeholders.open(run.begin, run.end);
    load(module);
    bool inPlace = isInPlace(module);
    auto wider = runs;
    if (!inPlace) {
      if (!widen(placeholders, module, order, wider, attempt < mostAttempts / 2)) return false;
      unload(module);
    }
    for (bool wholeChunks : {false, true})  // these are closed when no gap is left to take their placeholder modules
      for (auto& run : runs)
        if (run.isWholeChunks() == wholeChunks &&
            !placeholders.close(module.device(), inPlace ? run.used : run.begin, run.end))
          return false;
    if (inPlace) return true;
    runs = wider;
  }
  return false;
}

// Where nothing is open a module's variables lie one behind the other, in the order in which they came.
Variables Placement::inOrder(const Placed& module) {
  std::map<uint64_t, const stub::ModuleVariable*> ordered;
  load(module);
  for (auto* variable : module.variables) ordered[addressOf(module, *variable)] = variable;
  unload(module);
  Variables variables;
  for (auto& [address, variable] : ordered) variables.push_back(variable);
  return variables;
}

// The first variable to go astray went into the gap `taken`, where the smaller one is preferred, or else the older, and
// not into its own: so that gap was larger, or younger. False where nothing more can be learned.
bool Placement::widen(const PlaceholderModules& placeholders, const Placed& module, const Variables& variables,
                      std::vector<Run>& runs, bool mayReorder) {
  auto holding = [&](uint64_t address) {
    return std::find_if(runs.begin(), runs.end(), [&](auto& run) { return address >= run.begin && address < run.end; });
  };
  auto astray = std::find_if(variables.begin(), variables.end(),
                             [&](auto* variable) { return addressOf(module, *variable) != variable->address; });
  if (astray == variables.end()) return false;
  uint64_t wanted = (*astray)->address, at = addressOf(module, **astray);
  auto own = holding(wanted), taken = holding(at);
  if (own == runs.end() || taken == runs.end() || own == taken) return false;
  uint64_t left = own->end - wanted;
  if (mayReorder && taken->end - at == left && wanted == own->begin && taken < own) {
    std::rotate(taken, taken + 1, own + 1);  // opened after it, and so younger
    return true;
  }
  uint64_t end = std::max(taken->end, at + left) + variableGranule, limit = roundUp(taken->begin + 1, variableChunk);
  // A placeholder module stays, or the chunk goes. Where the gap would be the whole chunk, there was none yet.
  if (end >= limit) end = taken->begin % variableChunk == 0 ? limit : limit - variableGranule;
  for (auto& run : runs)  // another gap
    if (run.begin > taken->begin && end >= run.begin) return false;
  if (end <= taken->end || !placeholders.cover(taken->end, end)) return false;
  taken->end = end;
  return true;
}

// In the order in which they were loaded.
std::vector<Placed> modulesOf(const std::vector<ObjectRecord>& records, const std::vector<stub::ModuleVariable>& variables) {
  std::map<uint64_t, std::vector<const stub::ModuleVariable*>> byModule;
  for (auto& variable : variables)
    if (variable.bytes > 0) byModule[variable.module].push_back(&variable);
  std::vector<Placed> modules;
  for (auto& record : records)
    if (isPlacedModule(record)) modules.push_back({&record, byModule[record.id.handle]});
  std::sort(modules.begin(), modules.end(),
            [](auto& a, auto& b) { return a.record->recipe.front().position < b.record->recipe.front().position; });
  return modules;
}

}  // namespace

bool isPlacedModule(const ObjectRecord& record) { return record.id.kind == api::Kind::MODULE && !record.destroyed(); }

void placeModules(stub::SessionState& on, const std::vector<ObjectRecord>& records, const Rows& rows) {
  std::vector<stub::ModuleVariable> variables;
  for (auto& row : rows) variables.push_back(stub::variableOf(row));
  auto modules = modulesOf(records, variables);
  Placement placement(on);
  for (auto& module : modules) placement.load(module);
  auto inPlace = [&](const Placed& module) { return placement.isInPlace(module); };
  auto hasVariables = [&](const Placed& module) { return placement.hasVariables(module); };
  if (std::all_of(modules.begin(), modules.end(), inPlace)) return;
  if (!std::all_of(modules.begin(), modules.end(), hasVariables)) return;
  placement.unloadAll();
  if (placement.loadAmongPlaceholders(modules)) return;
  // As they were at first, so that what is said of them is the driver's doing and not ours.
  placement.unloadAll();
  for (auto& module : modules) placement.load(module);
}

}  // namespace vgpu::checkpoint
