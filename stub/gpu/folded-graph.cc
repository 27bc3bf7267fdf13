#include "stub/gpu/folded-graph.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace vgpu::stub {

namespace {

// Kernel parameters for one driver call: the driver copies what the pointers point to before the call returns.
struct KernelParameters {
  explicit KernelParameters(const KernelWork& work)
      : bytes(work.parameters.size()),
        extra{CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<kj::byte*>(work.parameters.begin()), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
              CU_LAUNCH_PARAM_END} {
    node.func = work.real;
    node.gridDimX = work.gridX, node.gridDimY = work.gridY, node.gridDimZ = work.gridZ;
    node.blockDimX = work.blockX, node.blockDimY = work.blockY, node.blockDimZ = work.blockZ;
    node.sharedMemBytes = work.sharedBytes;
    node.extra = extra.data();
  }
  KernelParameters(const KernelParameters&) = delete;

  size_t bytes;
  std::array<void*, 5> extra;
  CUDA_KERNEL_NODE_PARAMS node{};
};

CUDA_MEMCPY3D parametersOf(const CopyWork& work) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = work.from;
  copy.dstDevice = work.to;
  copy.WidthInBytes = copy.srcPitch = copy.dstPitch = work.bytes;
  copy.Height = copy.Depth = copy.srcHeight = copy.dstHeight = 1;
  return copy;
}

CUDA_MEMSET_NODE_PARAMS parametersOf(const FillWork& work) {
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = work.to;
  fill.value = work.value;
  fill.elementSize = work.elementBytes;
  fill.width = work.width;
  fill.pitch = work.width * work.elementBytes;
  fill.height = 1;
  return fill;
}

struct WordParameters {
  WordParameters(CUcontext context, const RecordWork& work) {
    operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operation.writeValue.address = work.word;
    operation.writeValue.value64 = work.sequence;
    operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
    node.ctx = context;
    node.count = 1;
    node.paramArray = &operation;
  }
  WordParameters(const WordParameters&) = delete;

  CUstreamBatchMemOpParams operation{};
  CUDA_BATCH_MEM_OP_NODE_PARAMS node{};
};

}  // namespace

CUresult FoldedGraph::make(const Driver& driver, CUcontext context, FoldedRun run, std::unique_ptr<FoldedGraph>& made) {
  std::unique_ptr<FoldedGraph> graph(new FoldedGraph(driver, context));
  if (CUresult error = driver.cuGraphCreate(&graph->graph, 0)) return error;
  CUgraphNode last = nullptr;
  graph->nodes.reserve(run.size());
  for (const FoldedWork& work : run)
    if (CUresult error = graph->add(work, last)) return error;
  if (CUresult error = driver.cuGraphInstantiateWithFlags(&graph->executable, graph->graph, 0)) return error;
  made = std::move(graph);
  return CUDA_SUCCESS;
}

FoldedGraph::~FoldedGraph() {
  if (executable != nullptr) driver.cuGraphExecDestroy(executable);
  if (graph != nullptr) driver.cuGraphDestroy(graph);
}

// Adds nodes that depend on `last`, and sets `last` to this work's last node.
CUresult FoldedGraph::add(const FoldedWork& work, CUgraphNode& last) {
  const size_t before = last != nullptr ? 1 : 0;
  Node& node = nodes.emplace_back();
  CUresult result = CUDA_SUCCESS;
  if (auto* kernel = std::get_if<KernelWork>(&work.what)) {
    KernelParameters parameters(*kernel);
    result = driver.cuGraphAddKernelNode_v2(&node.node, graph, &last, before, &parameters.node);
  } else if (auto* copy = std::get_if<CopyWork>(&work.what)) {
    auto parameters = parametersOf(*copy);
    result = driver.cuGraphAddMemcpyNode(&node.node, graph, &last, before, &parameters, context);
  } else if (auto* fill = std::get_if<FillWork>(&work.what)) {
    auto parameters = parametersOf(*fill);
    result = driver.cuGraphAddMemsetNode(&node.node, graph, &last, before, &parameters, context);
  } else if (auto* record = std::get_if<RecordWork>(&work.what)) {
    WordParameters parameters(context, *record);
    result = driver.cuGraphAddBatchMemOpNode(&node.word, graph, &last, before, &parameters.node);
    if (result == CUDA_SUCCESS) result = driver.cuGraphAddEventRecordNode(&node.node, graph, &node.word, 1, record->real);
  }
  last = node.node;
  note(node, work);
  node.made = node.now;
  return result;
}

CUresult FoldedGraph::set(FoldedRun run) {
  for (size_t i = 0; i < nodes.size(); ++i)
    if (CUresult error = setNode(nodes[i], run[i])) return error;
  return CUDA_SUCCESS;
}

// A record's sequence number always differs, so its word is always set.
CUresult FoldedGraph::setNode(Node& node, const FoldedWork& work) {
  bool same = isSame(node, work);
  auto* record = std::get_if<RecordWork>(&work.what);
  if (same && record == nullptr) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  if (auto* kernel = std::get_if<KernelWork>(&work.what)) {
    KernelParameters parameters(*kernel);
    result = driver.cuGraphExecKernelNodeSetParams_v2(executable, node.node, &parameters.node);
  } else if (auto* copy = std::get_if<CopyWork>(&work.what)) {
    auto parameters = parametersOf(*copy);
    result = driver.cuGraphExecMemcpyNodeSetParams(executable, node.node, &parameters, context);
  } else if (auto* fill = std::get_if<FillWork>(&work.what)) {
    auto parameters = parametersOf(*fill);
    result = driver.cuGraphExecMemsetNodeSetParams(executable, node.node, &parameters, context);
  } else {
    WordParameters parameters(context, *record);
    if (!same) result = driver.cuGraphExecEventRecordNodeSetEvent(executable, node.node, record->real);
    if (result == CUDA_SUCCESS) result = driver.cuGraphExecBatchMemOpNodeSetParams(executable, node.word, &parameters.node);
  }
  if (result == CUDA_SUCCESS && !same) note(node, work);
  return result;
}

bool FoldedGraph::does(FoldedRun run) const { return std::ranges::equal(nodes, run, isSame); }

CUresult FoldedGraph::launch(CUstream stream) { return driver.cuGraphLaunch(executable, stream); }

bool FoldedGraph::names(api::Kind kind, uint64_t handle) const {
  auto isHost = [](char shape) { return shape > copyShape(false, false) && shape <= copyShape(true, true); };
  auto isDevice = [](char shape) { return shape < copyShape(true, true); };  // fills, and copies with an end in device memory
  return std::ranges::any_of(nodes, [&](const Node& node) {
    switch (kind) {
      case api::Kind::FUNCTION: return node.shape == kernelShape && (node.made.object == handle || node.now.object == handle);
      case api::Kind::MODULE: return node.shape == kernelShape && (node.made.module == handle || node.now.module == handle);
      case api::Kind::EVENT: return node.shape == recordShape && (node.made.object == handle || node.now.object == handle);
      case api::Kind::LEASE: return isDevice(node.shape);
      case api::Kind::HOST_LEASE: return isHost(node.shape);
      default: return false;
    }
  });
}

bool FoldedGraph::isSame(const Node& node, const FoldedWork& work) {
  return node.words.size() == work.words.size() &&
         std::memcmp(node.words.data(), work.words.begin(), work.words.asBytes().size()) == 0;
}

void FoldedGraph::note(Node& node, const FoldedWork& work) {
  node.shape = work.shape;
  node.words.assign(work.words.begin(), work.words.end());
  if (auto* kernel = std::get_if<KernelWork>(&work.what)) node.now = {kernel->function, kernel->module};
  if (auto* record = std::get_if<RecordWork>(&work.what)) node.now = {record->event, 0};
}

}  // namespace vgpu::stub
