// By hand: modules, functions, variables and launches.
#include <array>

#include "cuda-handlers.h"
#include "stub/worker/image-store.h"

namespace vgpu::stub {

namespace {

constexpr size_t maxLogBytes = 64 * KiB;  // of the JIT's messages; the rest is cut off

// Only what the driver has accepted is kept, under the digest of the bytes that it was given, and only with facts that are
// whole: the store has no word for others.
void keepImage(Execution& on, Blob& blob) {
  if (on.images.store == nullptr || !blob.isNew() || !blob.facts().unknown.empty()) return;
  on.images.store->add(digestOf(blob.bytes()), blob.bytes(), blob.facts());
  blob.noteKept();
}

// Every attribute of the function that the driver knows.
template <typename Results>
void tellAttributes(Execution& on, CUfunction function, Results& results) {
  static_assert(CU_FUNC_ATTRIBUTE_MAX <= 64);
  uint64_t known = 0;
  auto attributes = results.initAttributes(CU_FUNC_ATTRIBUTE_MAX);
  for (unsigned i = 0; i < CU_FUNC_ATTRIBUTE_MAX; ++i) {
    int value = 0;
    if (on.driver.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(i), function) != CUDA_SUCCESS) continue;
    attributes.set(i, value);
    known |= uint64_t{1} << i;
  }
  results.setKnown(known);
}

}  // namespace

CUresult moduleLoad(Execution& on, const api::FrameReader<api::Cuda::ModuleLoadParams>& p, Reply& reply) {
  auto results = reply.init<api::Cuda::ModuleLoadResults>();
  Blob* found = on.blobs.find(p.getBlob());
  results.setMissing(found == nullptr || !found->isWhole());
  if (results.getMissing()) return CUDA_ERROR_INVALID_IMAGE;
  Blob& blob = *found;
  if (auto& problem = blob.facts().problem; !problem.empty()) {
    results.setLog(problem.c_str());
    return CUDA_ERROR_INVALID_IMAGE;
  }
  std::vector<char> log(maxLogBytes);
  std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), fromWire<void*>(log.size())};
  CUmodule module = nullptr;
  // The driver reads PTX up to a zero byte; a blob has one behind it, whatever the program sent.
  CUresult result =
      on.driver.cuModuleLoadDataEx(&module, blob.bytes().data(), options.size(), options.data(), values.data());
  log.back() = 0;
  results.setLog(log.data());
  if (result != CUDA_SUCCESS) return result;
  on.handles.add(api::Kind::MODULE, p.getModule(), toWire(module));
  on.modules[p.getModule()] = p.getBlob();
  bool prints = blob.facts().prints || !blob.facts().unknown.empty();  // to wait for output that never comes costs time only
  results.setPrints(prints);
  on.prints = on.prints || prints;
  keepImage(on, blob);
  return CUDA_SUCCESS;
}

CUresult moduleUnload(Execution& on, const api::FrameReader<api::Cuda::ModuleUnloadParams>& p, Reply&) {
  uint64_t handle = p.getHmod();
  auto module = fromWire<CUmodule>(on.handles.get(api::Kind::MODULE, handle));
  on.handles.remove(api::Kind::MODULE, handle);
  auto dropChildren = [&](auto& children, api::Kind kind) {
    std::erase_if(children, [&](auto& child) {
      if (child.second.module != handle) return false;
      on.handles.remove(kind, child.first);
      return true;
    });
  };
  dropChildren(on.functions, api::Kind::FUNCTION);
  dropChildren(on.variables, api::Kind::VARIABLE);
  on.modules.erase(handle);
  return on.afterAllWork([&driver = on.driver, module] { return driver.cuModuleUnload(module); });  // it would wait
}

CUresult moduleFunction(Execution& on, const api::FrameReader<api::Cuda::ModuleFunctionParams>& p, Reply& reply) {
  auto module = fromWire<CUmodule>(on.handles.get(api::Kind::MODULE, p.getModule()));
  CUfunction function = nullptr;
  if (CUresult error = on.driver.cuModuleGetFunction(&function, module, p.getName().cStr())) return error;

  auto results = reply.init<api::Cuda::ModuleFunctionResults>();
  tellAttributes(on, function, results);
  std::vector<std::pair<size_t, size_t>> layout;
  size_t offset = 0, size = 0;
  while (on.driver.cuFuncGetParamInfo(function, layout.size(), &offset, &size) == CUDA_SUCCESS)
    layout.push_back({offset, size});
  auto offsets = results.initOffsets(static_cast<unsigned>(layout.size()));
  auto sizes = results.initSizes(static_cast<unsigned>(layout.size()));
  FunctionInfo info{.module = p.getModule(), .real = function, .name = p.getName().cStr()};
  for (unsigned i = 0; i < layout.size(); ++i) {
    offsets.set(i, static_cast<uint32_t>(layout[i].first));
    sizes.set(i, static_cast<uint32_t>(layout[i].second));
    info.parameterBytes = std::max(info.parameterBytes, static_cast<uint32_t>(layout[i].first + layout[i].second));
  }
  on.handles.add(api::Kind::FUNCTION, p.getFunction(), toWire(function));
  on.functions[p.getFunction()] = std::move(info);
  return CUDA_SUCCESS;
}

CUresult moduleVariable(Execution& on, const api::FrameReader<api::Cuda::ModuleVariableParams>& p, Reply& reply) {
  auto module = fromWire<CUmodule>(on.handles.get(api::Kind::MODULE, p.getModule()));
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (CUresult error = on.driver.cuModuleGetGlobal_v2(&address, &bytes, module, p.getName().cStr())) return error;
  on.handles.add(api::Kind::VARIABLE, p.getVariable(), address);
  on.variables[p.getVariable()] = {p.getModule(), p.getName().cStr(), address, bytes};
  auto results = reply.init<api::Cuda::ModuleVariableResults>();
  results.setAddress(address);
  results.setBytes(bytes);
  return CUDA_SUCCESS;
}

CUresult funcAttributes(Execution& on, const api::FrameReader<api::Cuda::FuncAttributesParams>& p, Reply& reply) {
  auto function = fromWire<CUfunction>(on.handles.get(api::Kind::FUNCTION, p.getFunction()));
  auto results = reply.init<api::Cuda::FuncAttributesResults>();
  tellAttributes(on, function, results);
  return CUDA_SUCCESS;
}

CUresult occupancyTable(Execution& on, const api::FrameReader<api::Cuda::OccupancyTableParams>& p, Reply& reply) {
  constexpr unsigned most = 256;  // as many as a reply has room for, and more than a block has warps
  auto function = fromWire<CUfunction>(on.handles.get(api::Kind::FUNCTION, p.getFunction()));
  auto sizes = p.getBlockSizes();
  auto shared = p.getSharedBytes();
  if (sizes.size() != shared.size() || sizes.size() > most) return CUDA_ERROR_INVALID_VALUE;
  auto reported = reply.init<api::Cuda::OccupancyTableResults>();
  auto results = reported.initResults(sizes.size());
  auto blocks = reported.initNumBlocks(sizes.size());
  for (unsigned i = 0; i < sizes.size(); ++i) {
    int count = 0;
    results.set(i, on.driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&count, function, sizes[i], shared[i],
                                                                                  p.getFlags()));
    blocks.set(i, count);
  }
  return CUDA_SUCCESS;
}

CUresult launchKernel(Execution& on, const api::FrameReader<api::Cuda::LaunchKernelParams>& p, Reply&) {
  auto found = on.functions.find(p.getFunction());
  if (found == on.functions.end()) throw BadHandle{api::Kind::FUNCTION, p.getFunction()};
  auto& function = found->second;
  auto parameters = p.getParameters();
  if (parameters.size() < function.parameterBytes) return CUDA_ERROR_INVALID_VALUE;

  size_t bytes = parameters.size();
  std::array<void*, 5> extra{CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<kj::byte*>(parameters.begin()),
                             CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  CUstream stream = on.stream(p.getStream());
  on.launched(p.getStream(), p.getFunction());
  if (on.prints) on.noteLaunch();
  if (p.getCooperative()) {
    CUlaunchAttribute cooperative{};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    CUlaunchConfig config{p.getGridX(),  p.getGridY(),       p.getGridZ(), p.getBlockX(), p.getBlockY(),
                          p.getBlockZ(), p.getSharedBytes(), stream,       &cooperative,  1};
    return on.driver.cuLaunchKernelEx(&config, function.real, nullptr, extra.data());
  }
  return on.driver.cuLaunchKernel(function.real, p.getGridX(), p.getGridY(), p.getGridZ(), p.getBlockX(), p.getBlockY(),
                                  p.getBlockZ(), p.getSharedBytes(), stream, nullptr, extra.data());
}

}  // namespace vgpu::stub
