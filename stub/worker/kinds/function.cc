// Functions: attributes, occupancy, launches. They end with their module.
#include "stub/worker/kinds/function.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "cuda-handlers.h"
#include "stub/worker/allowed-shared.h"
#include "stub/worker/kinds/kind.h"
#include "stub/worker/kinds/launch-attributes.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"

namespace vgpu::stub {

CUresult funcAttributes(Execution& on, const api::FrameReader<api::Cuda::FuncAttributesParams>& p, Reply& reply) {
  auto function = fromWire<CUfunction>(on.handles.get(api::Kind::FUNCTION, p.getFunction()));
  auto results = reply.init<api::Cuda::FuncAttributesResults>();
  reportAttributes(on, function, results);
  return CUDA_SUCCESS;
}

CUresult occupancyTable(Execution& on, const api::FrameReader<api::Cuda::OccupancyTableParams>& p, Reply& reply) {
  constexpr unsigned most = 256;  // fits into a reply, and is more than the warps of a block
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

// Calls `body` with the driver's function, the stream, and the parameters in the driver's form.
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
    CUresult result = on.driver.cuLaunchKernelEx(&config, function, nullptr, extra);
    if (result == CUDA_SUCCESS) noteNeed(on, on.functions.at(p.getFunction()), p, attributes.get());
    return result;
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

namespace {

uint64_t attributeOf(Execution& on, CUdevice_attribute which) {
  int value = 0;
  return on.driver.cuDeviceGetAttribute(&value, which, on.driver.device(on.device())) == CUDA_SUCCESS
             ? static_cast<uint64_t>(value)
             : 0;
}

// How many blocks of that shape the GPU can run at once.
uint64_t roomFor(Execution& on, const FunctionInfo& function, const LaunchNeed& need) {
  int blocks = 0;  // for each multiprocessor
  AllowedShared allowed(on.driver, function.real, need.sharedBytes);
  on.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function.real, static_cast<int>(need.threads), need.sharedBytes);
  return static_cast<uint64_t>(blocks) * attributeOf(on, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

// Whether every GPU that can run a launch that needs `larger` can run one that needs `smaller`.
bool covers(const LaunchNeed& larger, const LaunchNeed& smaller) {
  return larger.blocks >= smaller.blocks && larger.threads >= smaller.threads && larger.sharedBytes >= smaller.sharedBytes &&
         larger.clusterBlocks >= smaller.clusterBlocks;
}

void add(std::vector<LaunchNeed>& needs, const LaunchNeed& need) {
  std::erase_if(needs, [&](auto& known) { return covers(need, known); });
  needs.push_back(need);
}

}  // namespace

// Keeps the grids that no other one covers, and the largest cluster. Once there are many, a new grid is recorded with as many blocks as
// this GPU can run at once: so there is at most one entry for each block size and occupancy, and the GPU that ran the launches fits all
// entries.
void note(Execution& on, FunctionInfo& function, const LaunchNeed& need) {
  constexpr size_t mostExact = 64;
  auto isKnown = [&](const LaunchNeed& other) {
    return std::ranges::any_of(function.needs, [&](auto& known) { return covers(known, other); });
  };
  if (LaunchNeed cluster{.clusterBlocks = need.clusterBlocks}; !isKnown(cluster) && need.clusterBlocks > 0)
    add(function.needs, cluster);
  LaunchNeed grid{need.blocks, need.threads, need.sharedBytes};
  if (grid.blocks == 0 || isKnown(grid)) return;
  if (function.needs.size() >= mostExact) grid.blocks = std::max(grid.blocks, roomFor(on, function, grid));
  add(function.needs, grid);
}

namespace {

Rows save(SessionState& session) {
  Rows rows;
  for (unsigned device = 0; device < session.deviceCount(); ++device) {
    std::map<uint64_t, const FunctionInfo*> inOrder;
    for (auto& [handle, function] : session.of(device).functions) inOrder[handle] = &function;
    for (auto [handle, function] : inOrder)
      for (auto& need : function->needs) rows.push_back({handle, need.blocks, need.threads, need.sharedBytes, need.clusterBlocks});
  }
  return rows;
}

bool isValid(const Row& row, uint64_t devices) {
  return handleDevice(numberIn(row, 0)) < devices && numberIn(row, 2) <= 1024 && numberIn(row, 3) <= 1 * GiB;
}

// On the GPU on which the recipes have made the function.
void requireFit(Execution& on, const FunctionInfo& function, const LaunchNeed& need) {
  CUdevice device = on.driver.device(on.device());
  auto refuse = [&](const std::string& what, const std::string& here) {
    char name[256] = "";
    on.driver.cuDeviceGetName(name, sizeof name, device);
    fail(fmt::format("the program has launched the kernel {} {}, but GPU {} here, {}, {}: resume it on a GPU that can run it",
                     function.name, what, device, name, here));
  };
  if ((need.clusterBlocks > 0 || function.hasClusters) && attributeOf(on, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0)
    refuse("in clusters", "does not support clusters");
  const uint64_t most = need.blocks == 0 ? 0 : roomFor(on, function, need);
  if (need.blocks > most)
    refuse(fmt::format("as a cooperative grid of {} blocks of {} threads with {} bytes of shared memory", need.blocks,
                       need.threads, need.sharedBytes),
           fmt::format("has room for {} at once", most));
}

void compare(SessionState& session, const Rows& rows) {
  for (auto& row : rows) {
    Execution& on = session.select(handleDevice(numberIn(row, 0)));
    auto found = on.functions.find(numberIn(row, 0));
    if (found == on.functions.end())
      fail(fmt::format("the snapshot has launches of a function {:#x}, which none of its objects creates", numberIn(row, 0)));
    LaunchNeed need{numberIn(row, 1), numberIn(row, 2), numberIn(row, 3), numberIn(row, 4)};
    requireFit(on, found->second, need);
    note(on, found->second, need);
  }
}

}  // namespace

const KindModule launchKind{.name = "launches", .columns = "nnnnn", .isValid = isValid, .save = save, .compare = compare};

}  // namespace vgpu::stub
