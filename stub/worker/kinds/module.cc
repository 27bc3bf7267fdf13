// Modules, their functions and their variables, and launches. The driver places images, so a restore compares the address of each variable.
#include "stub/worker/kinds/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "cuda-handlers.h"
#include "stub/worker/kinds/function.h"
#include "stub/worker/kinds/kind.h"
#include "stub/worker/module-loading.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

namespace {

constexpr size_t namesBytes = 128 * KiB;  // in one reply, plus the last name

CUresult note(Execution& on, const ModuleLoading& loading, CUresult loaded, Reply& reply) {
  auto& facts = loading.blob.facts();
  auto results = reply.init<api::Cuda::ModuleLoadResults>();
  results.setErrors(facts.problem.empty() ? loading.jit.errors() : facts.problem.c_str());
  results.setInfo(loading.jit.info());
  results.setMilliseconds(loading.jit.milliseconds());
  if (loaded != CUDA_SUCCESS) return loaded;
  on.handles.add(api::Kind::MODULE, loading.handle, toWire(loading.real));
  on.modules.blobs[loading.handle] = loading.number;
  bool prints = facts.prints || !facts.unknown.empty();  // waiting for output that never comes only costs time
  results.setPrints(prints);
  if (prints) on.session.prints.store(true, std::memory_order_relaxed);
  if (facts.usesHeap || !facts.unknown.empty())
    on.session.residue = "its kernels may have taken memory from the device's heap";
  return CUDA_SUCCESS;
}

}  // namespace

CUresult moduleLoad(Execution& on, const api::FrameReader<api::Cuda::ModuleLoadParams>& p, Reply& reply) {
  Blob* blob = on.blobs.find(p.getBlob());
  if (blob == nullptr || !blob->isWhole()) {
    reply.init<api::Cuda::ModuleLoadResults>().setMissing(true);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  if (on.modules.blobs.contains(p.getModule())) throw BadHandle{api::Kind::MODULE, p.getModule()};
  auto loading = std::make_shared<ModuleLoading>(p, *blob);
  reply.putOff({[&on, loading] { return loading->load(on); },
                [&on, loading](CUresult loaded, Reply& to) { return note(on, *loading, loaded, to); }});
  return CUDA_SUCCESS;
}

CUresult moduleUnload(Execution& on, const api::FrameReader<api::Cuda::ModuleUnloadParams>& p, Reply&) {
  uint64_t handle = p.getHmod();
  auto module = fromWire<CUmodule>(on.handles.take(api::Kind::MODULE, handle));
  auto dropChildren = [&](auto& children, api::Kind kind) {
    std::erase_if(children, [&](auto& child) {
      if (child.second.module != handle) return false;
      on.handles.remove(kind, child.first);
      return true;
    });
  };
  dropChildren(on.functions, api::Kind::FUNCTION);
  {
    std::lock_guard lock(on.modules.mutex);
    dropChildren(on.modules.variables, api::Kind::VARIABLE);
  }
  on.modules.blobs.erase(handle);
  auto unload = [&on, handle, module] {
    return on.moduleGroups.unload(handle) ? on.moduleGroups.endGroups() : on.driver.cuModuleUnload(module);
  };
  auto end = [&on, unload] { return on.afterSlowCalls(unload, "cuModuleUnload"); };
  return on.afterAllWork(end, Execution::DriverWaits::yes);
}

CUresult moduleFunction(Execution& on, const api::FrameReader<api::Cuda::ModuleFunctionParams>& p, Reply& reply) {
  auto module = fromWire<CUmodule>(on.handles.get(api::Kind::MODULE, p.getModule()));
  CUfunction function = nullptr;
  if (CUresult error = on.driver.cuModuleGetFunction(&function, module, p.getName().cStr())) return error;

  auto results = reply.init<api::Cuda::ModuleFunctionResults>();
  reportAttributes(on, function, results);
  FunctionInfo info{.module = p.getModule(), .real = function, .name = p.getName().cStr()};
  int clusterWidth = 0;  // a driver without the attribute has no clusters
  on.driver.cuFuncGetAttribute(&clusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, function);
  info.hasClusters = clusterWidth != 0;
  std::vector<uint32_t> offsets, sizes;
  size_t offset = 0, size = 0;
  while (on.driver.cuFuncGetParamInfo(function, offsets.size(), &offset, &size) == CUDA_SUCCESS) {
    offsets.push_back(static_cast<uint32_t>(offset));
    sizes.push_back(static_cast<uint32_t>(size));
    info.parameterBytes = std::max(info.parameterBytes, static_cast<uint32_t>(offset + size));
  }
  results.setOffsets(kj::arrayPtr(offsets.data(), offsets.size()));
  results.setSizes(kj::arrayPtr(sizes.data(), sizes.size()));
  on.handles.add(api::Kind::FUNCTION, p.getFunction(), toWire(function));
  info.parameterOffsets = std::move(offsets);
  on.functions[p.getFunction()] = std::move(info);
  return CUDA_SUCCESS;
}

CUresult moduleVariable(Execution& on, const api::FrameReader<api::Cuda::ModuleVariableParams>& p, Reply& reply) {
  auto module = fromWire<CUmodule>(on.handles.get(api::Kind::MODULE, p.getModule()));
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (CUresult error = on.driver.cuModuleGetGlobal_v2(&address, &bytes, module, p.getName().cStr())) return error;
  on.handles.add(api::Kind::VARIABLE, p.getVariable(), address);
  std::lock_guard lock(on.modules.mutex);
  on.modules.variables[p.getVariable()] = {p.getModule(), p.getName().cStr(), address, bytes};
  auto results = reply.init<api::Cuda::ModuleVariableResults>();
  results.setAddress(address);
  results.setBytes(bytes);
  unsigned managed = 0;
  on.driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
  results.setManaged(managed != 0);
  return CUDA_SUCCESS;
}

CUresult moduleFunctionNames(Execution& on, const api::FrameReader<api::Cuda::ModuleFunctionNamesParams>& p, Reply& reply) {
  auto module = fromWire<CUmodule>(on.handles.get(api::Kind::MODULE, p.getModule()));
  unsigned count = 0;
  if (CUresult error = on.driver.cuModuleGetFunctionCount(&count, module)) return error;
  std::vector<CUfunction> functions(count);
  if (count != 0)
    if (CUresult error = on.driver.cuModuleEnumerateFunctions(functions.data(), count, module)) return error;
  std::string names;  // each followed by a zero byte
  for (unsigned i = p.getFirst(); i < count && names.size() < namesBytes; ++i) {
    const char* name = nullptr;
    if (CUresult error = on.driver.cuFuncGetName(&name, functions[i])) return error;
    names.append(name).push_back(0);
  }
  auto results = reply.init<api::Cuda::ModuleFunctionNamesResults>();
  results.setNames(kj::StringPtr(names.c_str(), names.size()).asBytes());
  results.setCount(count);
  return CUDA_SUCCESS;
}

namespace {

void drop(Execution& on) {
  on.modules.blobs.clear();
  std::lock_guard lock(on.modules.mutex);
  on.modules.variables.clear();
  on.functions.clear();
}

// A snapshot is refused if it would lose what kernels keep in the heap, or in variables that are not known.
void visitUnsavable(const Execution& on, const Obstacle& visit) {
  for (auto [module, number] : on.modules.blobs) {
    auto* blob = on.blobs.find(number);
    if (blob == nullptr) continue;
    std::string name = fmt::format("module {:#x}", module);
    if (!blob->facts().unknown.empty())
      visit(name,
            fmt::format("{} of this program cannot be parsed: {}. So it is unknown which variables must be saved, and whether its kernels "
                        "use the device's heap, which cannot be saved. The program goes on; rebuild the module's image to make it "
                        "suspendable",
                        name, blob->facts().unknown));
    else if (blob->facts().usesHeap)
      visit(name,
            fmt::format("kernels of this program ({}) use malloc on the device, whose heap cannot be saved. The program goes on; use "
                        "memory from cudaMalloc in its kernels to make it suspendable",
                        name));
    else if (on.session.sharedModules.isTorn(fromWire<CUmodule>(on.handles.get(api::Kind::MODULE, module))))
      visit(name,
            fmt::format("several devices of this program share a __managed__ variable of {}, and one of them was reset since, so a driver "
                        "would place it elsewhere after a resume. The program goes on; use cudaMallocManaged to make it suspendable",
                        name));
  }
}

void requireSavable(const Execution& on) {
  visitUnsavable(on, [](const std::string&, const std::string& why) { fail(why); });
}

void obstacles(SessionState& session, const Obstacle& visit) {
  for (unsigned device : session.usedDevices()) visitUnsavable(session.of(device), visit);
}

// Of every loaded module, whether the program ever looked the variable up or not; a variable that it looked up may be listed twice.
std::vector<ModuleVariable> variablesOf(SessionState& session) {
  std::vector<ModuleVariable> variables;
  for (unsigned device : session.usedDevices()) {
    Execution& on = session.select(device);
    for (auto& variable : on.allVariables()) variables.push_back(variable);
    for (auto& [handle, variable] : on.modules.variables) variables.push_back(variable);
  }
  return variables;
}

// A row: module, symbol, address, bytes.
Rows save(SessionState& session) {
  for (unsigned device = 0; device < session.deviceCount(); ++device) requireSavable(session.of(device));
  Rows rows;
  for (auto& v : variablesOf(session)) rows.push_back({v.module, v.name, v.address, v.bytes});
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// The limit keeps the end of the range, also rounded up, below the highest address.
bool isValid(const Row& row, uint64_t devices) {
  ModuleVariable variable = variableOf(row);
  return handleDevice(variable.module) < devices && variable.bytes <= deviceArenaBytes &&
         variable.address <= std::numeric_limits<uint64_t>::max() - 2 * deviceArenaBytes;
}

void compare(SessionState& session, const Rows& rows) {
  std::map<std::pair<uint64_t, std::string>, ModuleVariable> here;
  for (auto& variable : variablesOf(session)) here.emplace(std::pair(variable.module, variable.name), variable);
  for (auto& row : rows) {
    ModuleVariable saved = variableOf(row);
    auto found = here.find({saved.module, saved.name});
    if (found == here.end())
      fail(fmt::format("the snapshot has the variable {}, which none of its objects creates", saved.name));
    auto& now = found->second;
    if (now.address != saved.address || now.bytes != saved.bytes)
      fail(fmt::format("the variable {} is at {:#x} ({} bytes) on this device, but the program knows it at {:#x} ({} bytes): the driver "
                       "placed its module at another address, so this snapshot cannot be resumed here",
                       saved.name, now.address, now.bytes, saved.address, saved.bytes));
  }
}

uint64_t bytes(const Row& row) { return numberIn(row, 3); }
unsigned device(const Row& row) { return handleDevice(numberIn(row, 0)); }

void read(SessionState& session, const Row& row, uint64_t offset, std::byte* out, size_t bytes) {
  readDevice(session, device(row), numberIn(row, 2) + offset, out, bytes);
}

void write(SessionState& session, const Row& row, uint64_t offset, const std::byte* in, size_t bytes) {
  writeDevice(session, device(row), numberIn(row, 2) + offset, in, bytes);
}

}  // namespace

bool Modules::haveVariables(uint64_t address, uint64_t bytes) const {
  std::lock_guard lock(mutex);
  // Variables may be adjacent, and a range may span several.
  uint64_t end = address + bytes;
  if (end < address) return false;
  for (bool found = true; found && address < end;) {
    found = false;
    for (auto& [handle, variable] : variables) {
      if (address < variable.address || address - variable.address >= variable.bytes) continue;
      address = variable.address + variable.bytes;
      found = true;
    }
  }
  return address >= end;
}

ModuleVariable variableOf(const Row& row) {
  return {.module = numberIn(row, 0), .name = textIn(row, 1), .address = numberIn(row, 2), .bytes = numberIn(row, 3)};
}

const KindModule moduleKind{.name = "variables",
                            .drop = drop,
                            .columns = "nsnn",
                            .isValid = isValid,
                            .save = save,
                            .obstacles = obstacles,
                            .compare = compare,
                            .bytes = bytes,
                            .device = device,
                            .read = read,
                            .write = write};

}  // namespace vgpu::stub
