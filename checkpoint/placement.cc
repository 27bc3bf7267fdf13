#include "checkpoint/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "vgpu/wire/unix-socket.h"

namespace vgpu::checkpoint {

namespace {

constexpr int mostAttempts = 256;  // to put one module in its place

// A module that has to be where it was: known by one of its variables.
struct Placed {
  const ObjectRecord* record;
  std::string symbol;    // empty where nobody knows an address in it
  uint64_t address = 0;  // of that variable
};

// A module of nothing but `bytes` of memory.
std::string fillerOf(uint64_t bytes) {
  return fmt::format(".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 1 .b8 filler[{}];\n",
                     bytes);
}

class Placement {
 public:
  explicit Placement(stub::Execution& on) : on(on) {}
  ~Placement() { dropFillers(); }

  void load(const Placed& module) {
    const RecordedFrame& frame = module.record->recipe.front();
    stub::Answer answer;
    CUresult result = on.execute(frame.method, frame.device, frame.words, frame.position, 0, answer);
    if (result != CUDA_SUCCESS)
      fail(fmt::format("the module {:#x} cannot be loaded again on this device: {}", module.record->id.handle,
                       stub::nameOf(on.driver, result)));
  }
  void unload(const Placed& module) {
    on.select(module.record->device);
    on.driver.cuModuleUnload(realOf(module));
    on.handles.remove(api::Kind::MODULE, module.record->id.handle);
    on.modules.erase(module.record->id.handle);
  }
  // How far from its place it lies; 0 where nobody knows a place.
  uint64_t distance(const Placed& module) {
    if (module.symbol.empty()) return 0;
    CUdeviceptr at = 0;
    size_t bytes = 0;
    on.select(module.record->device);
    if (on.driver.cuModuleGetGlobal_v2(&at, &bytes, realOf(module), module.symbol.c_str()) != CUDA_SUCCESS) return 0;
    return at > module.address ? at - module.address : module.address - at;
  }

  // Loads it, with fillers before it for as long as each brings it nearer.
  bool loadInPlace(const Placed& module) {
    load(module);
    uint64_t off = distance(module), size = off;
    for (int attempt = 0; off != 0 && size != 0; ++attempt) {
      if (attempt == mostAttempts) return false;
      unload(module);
      bool filled = addFiller(size);
      load(module);
      uint64_t now = distance(module);
      if (filled && now < off) {
        size = off = now;
      } else {
        if (filled) dropFiller();
        size /= 2;
      }
    }
    dropFillers();
    return off == 0;
  }

 private:
  CUmodule realOf(const Placed& module) const {
    return fromWire<CUmodule>(on.handles.get(api::Kind::MODULE, module.record->id.handle));
  }
  bool addFiller(uint64_t bytes) {
    CUmodule filler = nullptr;
    if (on.driver.cuModuleLoadDataEx(&filler, fillerOf(bytes).c_str(), 0, nullptr, nullptr) != CUDA_SUCCESS)
      return false;
    fillers.push_back(filler);
    return true;
  }
  void dropFiller() {
    on.driver.cuModuleUnload(fillers.back());
    fillers.pop_back();
  }
  void dropFillers() {
    while (!fillers.empty()) dropFiller();
  }

  stub::Execution& on;
  std::vector<CUmodule> fillers;
};

std::vector<Placed> modulesOf(const std::vector<ObjectRecord>& records, const std::vector<SavedVariable>& variables) {
  std::map<uint64_t, const SavedVariable*> byModule;
  for (auto& variable : variables) byModule[variable.module] = &variable;
  std::vector<Placed> modules;
  for (auto& record : records) {
    if (!isPlacedModule(record)) continue;
    auto known = byModule.find(record.id.handle);
    modules.push_back(known == byModule.end() ? Placed{&record, ""}
                                              : Placed{&record, known->second->symbol, known->second->address});
  }
  return modules;
}

}  // namespace

bool isPlacedModule(const ObjectRecord& record) { return record.id.kind == api::Kind::MODULE && !record.destroyed(); }

void placeModules(stub::Execution& on, const std::vector<ObjectRecord>& records,
                  const std::vector<SavedVariable>& variables) {
  auto modules = modulesOf(records, variables);
  Placement placement(on);
  auto inPlace = [&](const Placed& module) { return placement.distance(module) == 0; };
  for (auto& module : modules) placement.load(module);
  // By address: from one end of the driver's memory, and from the other, because drivers begin at either. Modules of
  // which nobody knows an address come last, where they are in nobody's way.
  auto sorted = modules;
  for (bool ascending : {true, false}) {
    if (std::all_of(sorted.begin(), sorted.end(), inPlace)) return;
    for (auto& module : sorted) placement.unload(module);
    std::stable_sort(sorted.begin(), sorted.end(), [&](auto& a, auto& b) {
      if (a.symbol.empty() != b.symbol.empty()) return b.symbol.empty();
      return ascending ? a.address < b.address : a.address > b.address;
    });
    for (auto& module : sorted) placement.loadInPlace(module);
  }
  if (std::all_of(sorted.begin(), sorted.end(), inPlace)) return;
  // As they were at first, so that what is said of them is the driver's doing and not ours.
  for (auto& module : sorted) placement.unload(module);
  for (auto& module : modules) placement.load(module);
}

}  // namespace vgpu::checkpoint
