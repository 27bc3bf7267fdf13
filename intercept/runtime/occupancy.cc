// How many blocks of a kernel fit a multiprocessor.
#include "intercept/runtime/convert.h"
#include "intercept/runtime/registry.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

template <class Use>
cudaError_t withConfig(const void* key, const cudaLaunchConfig_t* config, Use use) {
  if (config == nullptr) return cudaErrorInvalidValue;
  CUlaunchConfig driverConfig = toDriver(*config, config->stream);
  return withFunction(key, [&](CUfunction function) { return use(function, &driverConfig); });
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int* blocks, const void* function, int threads, size_t shared),
        withFunction(function, [&](CUfunction f) {
          return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, shared, 0);
        }))
RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        (int* blocks, const void* function, int threads, size_t shared, unsigned flags),
        withFunction(function, [&](CUfunction f) {
          return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, shared, flags);
        }))
RUNTIME(cudaOccupancyAvailableDynamicSMemPerBlock, (size_t * shared, const void* function, int blocks, int threads),
        withFunction(function,
                     [&](CUfunction f) { return cuOccupancyAvailableDynamicSMemPerBlock(shared, f, blocks, threads); }))
RUNTIME(cudaOccupancyMaxPotentialClusterSize, (int* size, const void* function, const cudaLaunchConfig_t* config),
        withConfig(function, config, [&](CUfunction f, const CUlaunchConfig* c) {
          return cuOccupancyMaxPotentialClusterSize(size, f, c);
        }))
RUNTIME(cudaOccupancyMaxActiveClusters, (int* clusters, const void* function, const cudaLaunchConfig_t* config),
        withConfig(function, config,
                   [&](CUfunction f, const CUlaunchConfig* c) { return cuOccupancyMaxActiveClusters(clusters, f, c); }))
