// Functions: attributes, occupancy, launches. They come and go with their module.
#include "stub/worker/kinds/function.h"

#include <array>

#include "cuda-handlers.h"

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
  on.gpu.launched(p.getStream(), p.getFunction());
  if (on.session.prints) on.noteLaunch();
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
