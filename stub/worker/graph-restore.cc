#include "stub/worker/graph-restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "stub/worker/allowed-shared.h"
#include "stub/worker/device-graphs.h"
#include "stub/worker/execution.h"
#include "stub/worker/kinds/launch-attributes.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/hex.h"

namespace vgpu::stub {

namespace {

struct LatestSetting {
  api::Method method;
  std::vector<capnp::word> words;
};

// State of one GPU while recipes are executed.
struct Recipes {
  bool areExecuted = false;
  // By a graph's virtual handle and a node's number: the latest frame that has set the node since instantiation. Every GPU's state has all
  // of them, because the rows do not say which GPU executes a node's frames.
  std::map<std::pair<uint64_t, uint64_t>, LatestSetting> settings;
  bool haveStandIns = false;         // a frame is being executed with stand-ins for memory
  CUfunction placeholder = nullptr;  // a kernel that does nothing; its module stays loaded as long as the context, because graphs use it
};

// Without variables, so that it does not change where the program's are placed (module-groups.h).
constexpr char placeholderImage[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry placeholder() { ret; }\n";

CUresult loadPlaceholder(Execution& on, CUfunction& function) {
  if (function != nullptr) return CUDA_SUCCESS;
  CUmodule module = nullptr;
  if (CUresult error = on.driver.cuModuleLoadData(&module, placeholderImage)) return error;
  return on.driver.cuModuleGetFunction(&function, module, "placeholder");
}

constexpr std::array methods{api::Method::graphSetKernel, api::Method::graphSetCopy,   api::Method::graphSetFill,
                             api::Method::graphSetEvent,  api::Method::graphSetMemOps, api::Method::graphEnable};

const api::Method* findMethod(const std::string& signature) {
  auto found = std::ranges::find_if(methods, [&](api::Method method) { return signature == api::infoOf(method).signature; });
  return found == methods.end() ? nullptr : found;
}

// Whether every object that the frame names exists. A graph that names an object that has ended cannot be launched any more.
bool isWhole(SessionState& session, api::Method method, kj::ArrayPtr<const capnp::word> words) {
  bool whole = true;
  api::visitEffects(method, words, [&](const api::EffectOn& one) {
    if (!one.nullable || one.handle != 0) whole &= session.of(handleDevice(one.handle)).handles.of(one.kind).contains(one.handle);
  });
  return whole;
}

bool isHandle(const Row& row) { return textIn(row, 2) == "handle"; }
bool isUpload(const Row& row) { return textIn(row, 2) == "upload"; }

// Calls `visit` for each graph of a device that has not ended, always in the same order.
template <typename Visit>
void forGraphs(SessionState& session, Visit&& visit) {
  for (unsigned device = 0; device < session.deviceCount(); ++device) {
    if (session.isEnded(device)) continue;
    std::map<uint64_t, KnownGraph*> ordered;
    for (auto& [handle, graph] : session.of(device).kept.of<KnownGraphs>()) ordered.emplace(handle, &graph);
    for (auto& [handle, graph] : ordered) visit(handle, *graph);
  }
}

KnownGraph* graphOf(SessionState& session, const Row& row) {
  return session.of(handleDevice(numberIn(row, 0))).kept.find<KnownGraphs>(numberIn(row, 0));
}

bool isSame(const KnownGraphNode::Settings& a, const KnownGraphNode::Settings& b) {
  return std::ranges::equal(a, b, [](auto& one, auto& other) {
    return one.first == other.first && one.second.size() == other.second.size() &&
           std::memcmp(one.second.data(), other.second.data(), one.second.size() * sizeof(capnp::word)) == 0;
  });
}

void addSettings(SessionState& session, uint64_t graph, uint64_t node, const KnownGraphNode::Settings& settings, Rows& rows) {
  for (auto& [method, words] : settings) {
    if (!isWhole(session, method, kj::arrayPtr(words.data(), words.size()))) continue;
    rows.push_back({graph, node, std::string(api::infoOf(method).signature), hexOf(std::as_bytes(std::span(words)))});
  }
}

LatestSetting settingIn(const Row& row) {
  auto bytes = bytesOf(textIn(row, 3));
  LatestSetting setting{*findMethod(textIn(row, 2)), std::vector<capnp::word>(bytes.size() / sizeof(capnp::word))};
  std::memcpy(setting.words.data(), bytes.data(), bytes.size());
  return setting;
}

CUresult execute(Execution& on, const LatestSetting& setting) {
  const auto words = kj::arrayPtr(setting.words.data(), setting.words.size());
  std::optional<AllowedShared> allowed;
  if (setting.method == api::Method::graphSetKernel) {
    api::FrameReader<api::Cuda::GraphKernelParams> p(words);
    auto found = on.functions.find(p.getFunction());
    if (found != on.functions.end()) allowed.emplace(on.driver, found->second.real, p.getSharedBytes());
  }
  Reply reply;
  return on.execute(setting.method, words, 0, 0, reply);
}

// Whether a frame of this method may be refused because memory, or a function of a module, that it names has ended.
bool mayBeRefused(api::Method method) {
  return method == api::Method::graphSetKernel || method == api::Method::graphSetCopy || method == api::Method::graphSetFill ||
         method == api::Method::graphSetMemOps;
}

bool isFill(api::Method method) { return method == api::Method::graphFill || method == api::Method::graphSetFill; }
bool isFillOrCopy(api::Method method) {
  return isFill(method) || method == api::Method::graphCopy || method == api::Method::graphSetCopy;
}

bool setsNode(api::Method method) { return std::ranges::find(methods, method) != methods.end(); }

// Adds the node as its frame says, although its memory is not mapped, or not yet: the program may map memory there and launch the graph, as
// it may have done before.
bool addOverStandIns(Execution& on, const LatestSetting& frame, KnownGraph& graph, const std::vector<CUgraphNode>& before) {
  auto& recipes = on.kept.of<Recipes>();
  const size_t had = graph.nodes.size();
  recipes.haveStandIns = true;
  on.session.physical.withStandIns(on.device(), [&] {
    graph.failure = CUDA_SUCCESS;
    if (setsNode(frame.method)) graph.beforeNext = before;
    const CUresult result = execute(on, frame);
    return result != CUDA_SUCCESS ? result : graph.failure;
  });
  recipes.haveStandIns = false;
  return graph.nodes.size() > had;
}

// Like addPlaceholder(), for a fill or a copy whose memory has ended, or is not there yet: the node fills or copies one valid byte, until
// setLate() or the program sets it.
bool addByte(Execution& on, LatestSetting frame, uint64_t node, KnownGraph& graph, const std::vector<CUgraphNode>& before) {
  if (graph.failure != CUDA_ERROR_INVALID_VALUE || node != graph.nodes.size() || !isFillOrCopy(frame.method)) return false;
  const auto leased = on.gpu.leases.ranges();
  const CUdeviceptr bytes = leased.empty() ? on.session.gpuAddress(&on.shared().header()) : leased.front().address;
  KnownGraphNode made{.device = on.device()};
  CUDA_MEMSET_NODE_PARAMS fill{.dst = bytes, .elementSize = 1, .width = 1, .height = 1};
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;  // as in every copy node, so that it can be set to pinned memory too
  copy.srcDevice = bytes;
  copy.dstDevice = bytes + 1;
  copy.WidthInBytes = copy.Height = copy.Depth = 1;
  CUcontext context = on.gpu.context.get();
  const CUresult result =
      isFill(frame.method) ? on.driver.cuGraphAddMemsetNode(&made.node, graph.body, before.data(), before.size(), &fill, context)
                           : on.driver.cuGraphAddMemcpyNode(&made.node, graph.body, before.data(), before.size(), &copy, context);
  if (result != CUDA_SUCCESS) return false;
  graph.failure = CUDA_SUCCESS;
  graph.placeholders.push_back(static_cast<uint32_t>(node));
  made.late.emplace(frame.method, std::move(frame.words));
  graph.nodes.push_back(std::move(made));
  return true;
}

// Sets the node to its latest setting. A fill or a copy whose memory has ended becomes a placeholder instead, because it may be disabled.
CUresult setAgain(SessionState& session, KnownGraph& graph, uint64_t node, LatestSetting setting) {
  Execution& on = session.select(graph.nodes[node].device);
  const CUresult result = session.physical.withStandIns(on.device(), [&] { return execute(on, setting); });
  if (result == CUDA_SUCCESS || !isFillOrCopy(setting.method)) return result;
  graph.placeholders.push_back(static_cast<uint32_t>(node));
  graph.nodes[node].late.emplace(setting.method, setting.words);
  graph.nodes[node].set[setting.method] = std::move(setting.words);
  return CUDA_SUCCESS;
}

CUresult upload(Execution& on, KnownGraph& graph) {
  noteUploaded(graph);
  if (CUresult error = on.driver.cuGraphUpload(graph.executable, on.gpu.progress.ownStream())) return error;
  return on.driver.cuStreamSynchronize(on.gpu.progress.ownStream());  // kernels of other streams may launch it next
}

}  // namespace

bool isGraphRow(const Row& row, uint64_t devices) {
  auto& words = textIn(row, 3);
  if (handleDevice(numberIn(row, 0)) >= devices) return false;
  if (isHandle(row) || isUpload(row)) return words.empty();
  return numberIn(row, 1) <= UINT32_MAX && findMethod(textIn(row, 2)) != nullptr && isHex(words) &&
         words.size() % (2 * sizeof(capnp::word)) == 0;
}

Rows saveGraphs(SessionState& session) {
  visitChangedNodes(session, [](const std::string&, const std::string& why) { fail(why); });
  Rows rows;
  forGraphs(session, [&](uint64_t handle, const KnownGraph& graph) {
    if (graph.address != 0) rows.push_back({handle, graph.address, std::string("handle"), std::string()});
    if (graph.isUploaded) {
      for (uint64_t node = 0; node < graph.nodes.size(); ++node) addSettings(session, handle, node, graph.nodes[node].uploaded, rows);
      rows.push_back({handle, uint64_t{0}, std::string("upload"), std::string()});
    }
    for (uint64_t node = 0; node < graph.nodes.size(); ++node)
      if (!graph.isUploaded || !isSame(graph.nodes[node].set, graph.nodes[node].uploaded))
        addSettings(session, handle, node, graph.nodes[node].set, rows);
  });
  return rows;
}

void visitChangedNodes(SessionState& session, const Obstacle& visit) {
  forGraphs(session, [&](uint64_t handle, const KnownGraph& graph) {
    if (graph.holders.empty() || !graph.isUploaded) return;
    std::string name = fmt::format("graph {:#x}", handle);
    visit(name, fmt::format("kernels may change nodes of {} (cudaGraphKernelNodeUpdatesApply and similar), and the present parameters of "
                            "these nodes cannot be read. The program goes on; it can be suspended after "
                            "it destroys the executable graph", name));
  });
}

void prepareGraphs(SessionState& session, const Rows& rows) {
  for (unsigned device = 0; device < session.deviceCount(); ++device) session.of(device).kept.of<Recipes>().areExecuted = true;
  for (auto& row : rows) {
    const uint64_t graph = numberIn(row, 0), number = numberIn(row, 1);
    if (isHandle(row)) deviceHandles(session.of(handleDevice(graph))).expect(graph, number);
    if (isHandle(row) || isUpload(row) || !mayBeRefused(*findMethod(textIn(row, 2)))) continue;
    for (unsigned device = 0; device < session.deviceCount(); ++device)
      session.of(device).kept.of<Recipes>().settings[{graph, number}] = settingIn(row);
  }
}

bool addAsSet(Execution& on, uint64_t handle, uint64_t node, KnownGraph& graph, std::vector<CUgraphNode> before) {
  auto& recipes = on.kept.of<Recipes>();
  auto latest = recipes.settings.extract({handle, node});
  if (latest.empty()) {
    if (!recipes.areExecuted || recipes.haveStandIns || graph.failure != CUDA_ERROR_INVALID_VALUE) return false;
    LatestSetting frame{on.method(), {on.words().begin(), on.words().end()}};
    return addOverStandIns(on, frame, graph, before) || addByte(on, std::move(frame), node, graph, before);
  }
  graph.failure = CUDA_SUCCESS;
  graph.beforeNext = std::move(before);
  if (CUresult refused = execute(on, latest.mapped())) graph.failure = refused;
  return true;
}

CUresult addPlaceholder(Execution& on, const api::FrameReader<api::Cuda::GraphKernelParams>& p, KnownGraph& graph, const NodePlace& place,
                        CUgraphNode& made) {
  auto& recipes = on.kept.of<Recipes>();
  if (!recipes.areExecuted || recipes.settings.contains({p.getGraph(), p.getNode()})) return CUDA_ERROR_INVALID_HANDLE;
  LaunchAttributes attributes(on, p.getAttributes(), p.getCooperative());
  CUDA_KERNEL_NODE_PARAMS kernel{};
  // Kernels name a device-updatable node by its handle, and a node with another module's kernel may get another handle.
  if (attributes.check() != CUDA_SUCCESS || KernelNode{kernel, attributes.get()}.isDeviceUpdatable()) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult error = loadPlaceholder(on, recipes.placeholder)) return error;
  kernel.func = recipes.placeholder;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  if (CUresult error = addKernelNode(on, place, {kernel, {}}, made)) return error;
  graph.placeholders.push_back(p.getNode());
  return CUDA_SUCCESS;
}

CUresult setLate(Execution& on, KnownGraph& graph) {
  CUresult first = CUDA_SUCCESS;
  if (graph.executable == nullptr) return first;
  for (uint32_t number : std::vector(graph.placeholders)) {
    KnownGraphNode& node = graph.nodes[number];
    if (!node.late || node.device != on.device()) continue;
    const auto& [method, words] = *node.late;
    const CUresult result = on.executeKept(method, kj::arrayPtr(words.data(), words.size()));
    if (first == CUDA_SUCCESS) first = result;
    if (result == CUDA_SUCCESS && !setsNode(method)) node.set.erase(method);  // the recipe contains this frame
  }
  return first;
}

void compareHandles(SessionState& session, const Rows& rows) {
  for (auto& row : rows) {
    if (!isHandle(row)) continue;
    const KnownGraph* graph = graphOf(session, row);
    const CUresult failure = graph == nullptr ? CUDA_ERROR_NOT_SUPPORTED : graph->failure;
    // A graph that names an object that has ended cannot be launched, and could not before the suspend.
    if (failure == CUDA_SUCCESS ? graph->address == numberIn(row, 1) : failure != CUDA_ERROR_NOT_SUPPORTED) continue;
    fail(fmt::format("graph {:#x}: kernels of this program launch it by the handle {:#x}, but the driver here gives it another one. Resume "
                     "the program with the same GPU model and driver as where it was suspended",
                     numberIn(row, 0), numberIn(row, 1)));
  }
}

void restoreGraphs(SessionState& session, const Rows& rows) {
  for (auto& row : rows) {
    KnownGraph* graph = graphOf(session, row);
    if (graph == nullptr || graph->executable == nullptr || isHandle(row)) continue;
    if (!isUpload(row) && numberIn(row, 1) >= graph->nodes.size()) continue;
    Execution& on = session.select(handleDevice(numberIn(row, 0)));
    const CUresult result = isUpload(row) ? upload(on, *graph) : setAgain(session, *graph, numberIn(row, 1), settingIn(row));
    if (result == CUDA_SUCCESS) continue;
    // It names memory that has ended: its next launch must be refused instead of running the node's earlier setting.
    on.driver.cuGraphExecDestroy(graph->executable);
    graph->executable = nullptr;
  }
  for (unsigned device : session.usedDevices())
    forGraphs(session, [&](uint64_t, KnownGraph& graph) {
      session.physical.withStandIns(device, [&] { return setLate(session.select(device), graph); });
    });
  session.physical.endStandIns();
  for (unsigned device : session.usedDevices()) deviceHandles(session.select(device)).endSpares(session.of(device));
  for (unsigned device = 0; device < session.deviceCount(); ++device) session.of(device).kept.of<Recipes>() = {};
}

}  // namespace vgpu::stub
