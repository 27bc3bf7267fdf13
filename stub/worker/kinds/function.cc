// Functions: attributes, occupancy, launches. They come and go with their module.
#include "stub/worker/kinds/function.h"

#include <array>

#include "cuda-handlers.h"
#include "stub/worker/kinds/launch-attributes.h"

namespace vgpu::stub {

CUresult funcAttributes(Execution& on, const api::FrameReader<api::Cuda::FuncAttributesParams>& p, Reply& reply) {
  auto function = fromWire<CUfunction>(on.handles.get(api::Kind::FUNCTION, p.getFunction()));
  auto results = reply.init<api::Cuda::FuncAttributesResults>();
  reportAttributes(on, function, results);
  return CUDA_SUCCESS;
}

CUresult occupancyTable(Execution& on, const api::FrameReader<api::Cuda::OccupancyTableParams>& p, Reply& reply) {
  constexpr unsigned most = 256;  // as many as a reply has room for, and more than a block has warps
  auto function = fromWire<CUfunction>(on.handles.get(api::Kind::FUNCTION, p.getFunction()));
  auto sizes = p.getBlockSizes();
  auto shared = p.getSharedBytes();
  if (sizes.size() != shared.size() || sizes.size() > most) return CUDA_ERROR_INVALID_VALUE;
  std::array<int32_t, most> results{}, blocks{};
  for (unsigned i = 0; i < sizes.size(); ++i)
    results[i] = on.driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks[i], function, sizes[i], shared[i], p.getFlags());
  auto reported = reply.init<api::Cuda::OccupancyTableResults>();
  reported.setResults(kj::arrayPtr(results.data(), sizes.size()));
  reported.setNumBlocks(kj::arrayPtr(blocks.data(), sizes.size()));
  return CUDA_SUCCESS;
}

namespace {

// Does `body` with the driver's function, and its parameters as the driver takes them.
template <typename Params, typename Body>
CUresult withFunction(Execution& on, const Params& p, Body&& body) {
  auto found = on.functions.find(p.getFunction());
  if (found == on.functions.end()) throw BadHandle{api::Kind::FUNCTION, p.getFunction()};
  auto& function = found->second;
  auto parameters = p.getParameters();
  if (parameters.size() < function.parameterBytes) return CUDA_ERROR_INVALID_VALUE;
  size_t bytes = parameters.size();
  std::array<void*, 5> extra{CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<kj::byte*>(parameters.begin()),
                             CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  CUstream stream = on.stream(p.getStream());
  on.gpu.launched(p.getStream(), p.getFunction());
  if (on.session.prints) on.noteLaunch();
  return body(function.real, stream, extra.data());
}

template <typename Params>
CUlaunchConfig configOf(const Params& p, CUstream stream, LaunchAttributes& attributes) {
  return {p.getGridX(),  p.getGridY(),       p.getGridZ(), p.getBlockX(),      p.getBlockY(),
          p.getBlockZ(), p.getSharedBytes(), stream,       attributes.begin(), attributes.count()};
}

template <typename Params>
CUresult launch(Execution& on, const Params& p, LaunchAttributes& attributes) {
  if (CUresult bad = attributes.check()) return bad;
  return withFunction(on, p, [&](CUfunction function, CUstream stream, void** extra) {
    CUlaunchConfig config = configOf(p, stream, attributes);
    return on.driver.cuLaunchKernelEx(&config, function, nullptr, extra);
  });
}

}  // namespace

CUresult launchKernel(Execution& on, const api::FrameReader<api::Cuda::LaunchKernelParams>& p, Reply&) {
  if (p.getCooperative()) {
    LaunchAttributes cooperative(on, nullptr, true);
    return launch(on, p, cooperative);
  }
  return withFunction(on, p, [&](CUfunction function, CUstream stream, void** extra) {
    return on.driver.cuLaunchKernel(function, p.getGridX(), p.getGridY(), p.getGridZ(), p.getBlockX(), p.getBlockY(), p.getBlockZ(),
                                    p.getSharedBytes(), stream, nullptr, extra);
  });
}

CUresult launchWithAttributes(Execution& on, const api::FrameReader<api::Cuda::LaunchWithAttributesParams>& p, Reply&) {
  LaunchAttributes attributes(on, p.getAttributes(), p.getCooperative());
  return launch(on, p, attributes);
}

CUresult occupancyClusters(Execution& on, const api::FrameReader<api::Cuda::OccupancyClustersParams>& p, Reply& reply) {
  auto function = fromWire<CUfunction>(on.handles.get(api::Kind::FUNCTION, p.getFunction()));
  LaunchAttributes attributes(on, p.getAttributes());
  if (CUresult bad = attributes.check()) return bad;
  CUlaunchConfig config = configOf(p, nullptr, attributes);
  auto ask = p.getPotential() ? on.driver.cuOccupancyMaxPotentialClusterSize : on.driver.cuOccupancyMaxActiveClusters;
  int value = 0;
  CUresult result = ask(&value, function, &config);
  reply.init<api::Cuda::OccupancyClustersResults>().setValue(value);
  return result;
}

}  // namespace vgpu::stub
