#include "stub/emulator/stream/launch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/device-graph-calls.h"
#include "stub/emulator/stream/device-graph-node.h"
#include "stub/emulator/stream/device-runtime.h"
#include "stub/emulator/stream/graph-conditional.h"

namespace vgpu::emulator::api {
namespace {

CUresult codeOf(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::illegalAddress:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Fault::Kind::sharedOutOfRange:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Fault::Kind::misalignedAddress:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case Fault::Kind::illegalInstruction:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case Fault::Kind::invalidAddressSpace:
      return CUDA_ERROR_INVALID_ADDRESS_SPACE;
    case Fault::Kind::invalidPc:
      return CUDA_ERROR_INVALID_PC;
    case Fault::Kind::stackOverflow:
      return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case Fault::Kind::assertion:
      return CUDA_ERROR_ASSERT;
    case Fault::Kind::trap:
      return CUDA_ERROR_LAUNCH_FAILED;
    case Fault::Kind::timeout:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    case Fault::Kind::notSupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    case Fault::Kind::divergentBarrier:
      return CUDA_ERROR_LAUNCH_FAILED;
    case Fault::Kind::uninitializedShared:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Fault::Kind::sharedRace:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

// Sets `cancelled` when the kernel's time is over, if the settings have a limit.
class TimeLimit {
 public:
  TimeLimit(Scheduler& scheduler, double seconds) : scheduler(scheduler) {
    if (seconds <= 0) return;
    auto limit = std::chrono::duration_cast<Scheduler::Deadline::duration>(std::chrono::duration<double>(seconds));
    alarm = scheduler.setAlarm(std::chrono::steady_clock::now() + limit, [this] { isCancelled = true; });
  }
  TimeLimit(const TimeLimit&) = delete;
  ~TimeLimit() {
    if (alarm != 0) scheduler.cancelAlarm(alarm);
  }
  const std::atomic<bool>* cancelled() const { return &isCancelled; }

 private:
  Scheduler& scheduler;
  uint64_t alarm = 0;
  std::atomic<bool> isCancelled{false};
};

void runKernel(const LaunchRequest& request) {
  Function& function = *request.function;
  Context& context = function.context;
  const Settings& settings = context.driver.settings;
  KernelMemory memory(context.driver.space, context.device.bit(), context.peers);
  KernelViews images(context.driver.textures, context.device, *function.module, request.references.get());
  ModuleRuntime runtime(*function.module);
  KernelGraphs graphs(context);
  TimeLimit limit(context.driver.scheduler, settings.timeoutSeconds);
  Launch launch{
      .kernel = &function.kernel(),
      .grid = request.grid,
      .block = request.block,
      .cluster = request.shape.cluster,
      .explicitCluster = request.shape.isExplicit,
      .dynamicSharedBytes = request.dynamicSharedBytes,
      .cooperative = request.cooperative,
      .parameters = request.parameters,
      .memory = &memory,
      .images = &images,
      .workers = settings.workers,
      .schedule = settings.schedule,
      .cancelled = limit.cancelled(),
      .checks = settings.checks,
      .smCount = static_cast<uint32_t>(context.device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)),
      .warpsPerSm =
          static_cast<uint32_t>(context.device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)) / 32,
      .runtime = &runtime,
      .graphs = &graphs};
  launch.stackBytes = static_cast<uint32_t>(std::max<size_t>(launch.stackBytes, context.limit(CU_LIMIT_STACK_SIZE)));
  if (function.module->module->usesHeap()) {  // no heap is allocated unless kernels use it
    Context::Heap heap = context.heap();
    launch.heapBase = heap.base;
    launch.heapBytes = heap.bytes;
  }
  if (ConditionValues* conditions = ConditionValues::current())
    launch.setCondition = [conditions](uint64_t number, uint32_t value) { conditions->set(number, value); };
  std::string output;
  std::optional<Fault> fault = run(launch, output);
  if (!output.empty()) context.print(output);
  if (!fault) return;
  context.flushOutput();
  std::fprintf(stderr, "vgpu emulator: %s\n", fault->report.c_str());
  context.fail(codeOf(fault->kind));
}

// cuda.h: a list of name and value pairs up to CU_LAUNCH_PARAM_END.
std::span<const std::byte> findParameterBuffer(void** extra) {
  const std::byte* buffer = nullptr;
  size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    require(extra[1] != nullptr);
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = static_cast<const std::byte*>(extra[1]);
    } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const size_t*>(extra[1]);
    } else {
      refuse(CUDA_ERROR_INVALID_VALUE);
    }
  }
  require(buffer != nullptr || bytes == 0);
  return {buffer, bytes};
}

}  // namespace

std::vector<std::byte> readParameters(const Kernel& kernel, void** kernelParams, void** extra) {
  std::span<const Parameter> parameters = parametersOf(kernel);
  size_t bytes = 0;
  for (const Parameter& each : parameters) bytes = std::max<size_t>(bytes, size_t{each.offset} + each.bytes);
  std::vector<std::byte> block(bytes);
  require(kernelParams == nullptr || extra == nullptr);
  if (extra) {
    std::span<const std::byte> buffer = findParameterBuffer(extra);
    // As in the driver: missing bytes are zero, more than the kernel takes is refused.
    if (buffer.size() > bytes) refuse(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    std::copy(buffer.begin(), buffer.end(), block.begin());
    return block;
  }
  require(kernelParams != nullptr || parameters.empty());
  for (size_t i = 0; i < parameters.size(); ++i) {
    require(kernelParams[i] != nullptr);
    std::memcpy(block.data() + parameters[i].offset, kernelParams[i], parameters[i].bytes);
  }
  return block;
}

std::array<uint32_t, 3> clusterOf(Function& function, const std::array<uint32_t, 3>& asked) {
  constexpr std::array<uint32_t, 3> none{};
  const auto own = function.requiredCluster();
  if (own == none) return asked[0] != 0 ? asked : std::array<uint32_t, 3>{1, 1, 1};
  if (blocksOf(own) == 0 || (asked[0] != 0 && asked != own)) refuse(CUDA_ERROR_INVALID_CLUSTER_SIZE);
  return own;
}

void checkLaunch(const LaunchRequest& request) {
  const Device& device = request.function->context.device;
  struct Dimension {
    uint32_t value;
    CUdevice_attribute most;
  };
  const Dimension dimensions[] = {
      {request.grid[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},   {request.grid[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
      {request.grid[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},   {request.block[0], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
      {request.block[1], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y}, {request.block[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z}};
  for (const Dimension& each : dimensions) {
    require(each.value != 0 && each.value <= static_cast<uint32_t>(device.attribute(each.most)));
  }
  uint64_t threads = uint64_t{request.block[0]} * request.block[1] * request.block[2];
  require(threads <= static_cast<uint64_t>(device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)));
  KernelAttributes kernel = attributesOf(request.function->kernel());
  require(threads <= kernel.maxThreadsPerBlock);
  require(request.dynamicSharedBytes <= request.function->dynamicSharedLimit());
  const auto cluster = clusterOf(*request.function, request.cluster);
  if (blocksOf(cluster) > request.function->mostClusterBlocks()) refuse(CUDA_ERROR_INVALID_CLUSTER_SIZE);
  for (int axis = 0; axis < 3; ++axis)
    if (request.grid[axis] % cluster[axis] != 0) refuse(CUDA_ERROR_INVALID_CLUSTER_SIZE);
  if (!request.cooperative) return;
  uint64_t blocks = uint64_t{request.grid[0]} * request.grid[1] * request.grid[2];
  auto resident = static_cast<uint64_t>(
      residentBlocks(*request.function, static_cast<uint32_t>(threads), request.dynamicSharedBytes));
  const uint64_t all = static_cast<uint64_t>(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const uint64_t processors = request.processors == 0 ? all : request.processors;
  if (blocks > resident * processors) refuse(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

Operation launchOperation(LaunchRequest request) {
  auto kept = std::make_shared<LaunchRequest>(std::move(request));
  kept->shape = {clusterOf(*kept->function, kept->cluster), kept->cluster[0] != 0 || kept->function->requiredCluster()[0] != 0};
  kept->pointers.clear();  // copied from another request, whose block they point into
  for (const Parameter& each : parametersOf(kept->function->kernel())) {
    kept->pointers.push_back(kept->parameters.data() + each.offset);
  }
  return {.weight = Weight::heavy,
          .action =
              [kept] {
                if (!kept->device)
                  runKernel(*kept);
                else if (std::optional<LaunchRequest> changed = kept->device->current())
                  runKernel(*changed);
                return Outcome::finished;
              },
          .type = CU_GRAPH_NODE_TYPE_KERNEL,
          .description = kept};
}

namespace {

// `request` has the launch's shape and attributes. `node`: set to the device-updatable node if the launch asks for one.
CUresult launch(CUfunction handle, LaunchRequest request, CUstream streamHandle, void** kernelParams, void** extra,
                CUgraphDeviceNode* node = nullptr) {
  return enterContext([&](Context& context) {
    request.function = functionFor(context, handle);
    std::shared_ptr<Stream> stream = streamOf(context, streamHandle);
    if (&request.function->context != &stream->context) refuse(CUDA_ERROR_INVALID_HANDLE);
    if (stream->green) request.processors = static_cast<uint32_t>(stream->green->processors.count());
    checkLaunch(request);
    const Kernel& kernel = request.function->kernel();
    if (attributesOf(kernel).explicitCluster && request.cluster[0] == 0) refuse(CUDA_ERROR_INVALID_CLUSTER_SIZE);
    context.flushOutput();
    request.parameters = readParameters(kernel, kernelParams, extra);
    const bool isCaptured = stream->capturing();
    if (!isCaptured && (request.deviceUpdatable || callsOf(kernel).launchGraphs)) refuse(CUDA_ERROR_NOT_SUPPORTED);
    if (request.deviceUpdatable) {
      request.device = context.driver.deviceNodes.make();
      *node = asHandle<CUgraphDeviceNode>(request.device->handle);
    }
    request.references = request.function->module->references.views();
    stream->submit(launchOperation(std::move(request)));
  });
}

}  // namespace

void applyAttribute(CUlaunchAttributeID attribute, const CUlaunchAttributeValue& value, LaunchRequest& request) {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
    // Allows the next kernel to start early; it need not.
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      return;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      request.cooperative = value.cooperative != 0;
      return;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto& cluster = value.clusterDim;
      if (cluster.x == 0 && cluster.y == 0 && cluster.z == 0) return;  // no cluster
      require(cluster.x != 0 && cluster.y != 0 && cluster.z != 0);
      request.cluster = {cluster.x, cluster.y, cluster.z};
      return;
    }
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: {
      const int wanted = value.deviceUpdatableKernelNode.deviceUpdatable;
      require(wanted == 0 || wanted == 1);
      if (wanted == 0 && request.device) refuse(CUDA_ERROR_NOT_SUPPORTED);  // a node stays device-updatable
      request.deviceUpdatable = wanted != 0;
      return;
    }
    default:
      refuse(CUDA_ERROR_NOT_SUPPORTED);
  }
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                                unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream stream,
                                void** kernelParams, void** extra) {
  return launch(function, {.grid = {gridX, gridY, gridZ}, .block = {blockX, blockY, blockZ}, .dynamicSharedBytes = sharedBytes},
                stream, kernelParams, extra);
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,
                                           unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                                           CUstream stream, void** kernelParams) {
  return launch(function,
                {.grid = {gridX, gridY, gridZ},
                 .block = {blockX, blockY, blockZ},
                 .dynamicSharedBytes = sharedBytes,
                 .cooperative = true},
                stream, kernelParams, nullptr);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** kernelParams,
                                  void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchRequest request{.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                        .dynamicSharedBytes = config->sharedMemBytes};
  CUgraphDeviceNode* node = nullptr;
  CUresult understood = enterAlways([&] {
    require(config->numAttrs == 0 || config->attrs != nullptr);
    for (CUlaunchAttribute& each : std::span(config->attrs, config->numAttrs)) {
      applyAttribute(each.id, each.value, request);
      if (each.id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) node = &each.value.deviceUpdatableKernelNode.devNode;
    }
  });
  if (understood != CUDA_SUCCESS) return understood;
  return launch(function, std::move(request), config->hStream, kernelParams, extra, node);
}
