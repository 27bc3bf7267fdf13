// Random executable graphs over mapped or registered memory. After instantiation, nodes are set to other memory, enabled and disabled, and
// whole graphs updated; memory is unmapped and mapped again, its device's access is reduced, and it is unregistered and registered again.
// At the pause point any of the memory may be missing. Afterwards all of it is provided again, and each graph must do what it was last set
// to do. With two devices that are peers, nodes and memory belong to either, and no host memory is used.
//
// Arguments: the first seed, and the number of worlds (one per seed).
#include <sys/mman.h>

#include <functional>
#include <memory>
#include <random>

#include "shared-physical.h"

namespace {

constexpr unsigned words = 16;  // used in each piece

__global__ void add(unsigned* to, unsigned value) { *to += value; }

int devices = 1;

void waitForAll() {
  for (int device = 0; device < devices; ++device) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaDeviceSynchronize());
  }
}

struct Random {
  explicit Random(unsigned seed) : numbers(seed) {}
  unsigned pick(size_t count) { return numbers() % count; }
  std::mt19937 numbers;
};

// Memory at a fixed address: device memory that the program maps, or host memory that it registers.
class Piece {
 public:
  Piece(Random& random, bool isHosts) : isHosts(isHosts), device(isHosts ? 0 : random.pick(devices)), random(random) {
    if (isHosts) memory = static_cast<unsigned*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    else CALL(cuMemAddressReserve, reinterpret_cast<CUdeviceptr*>(&memory), bytes, 0, 0, 0);
    bring();
  }
  ~Piece() {
    if (isHosts) {
      if (isThere) CHECK(cudaHostUnregister(memory));
      munmap(memory, bytes);
    } else {
      if (isThere) CALL(cuMemUnmap, address(), bytes);
      CALL(cuMemAddressFree, address(), bytes);
    }
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  // Maps or registers it, and allows access, so that graphs may use it.
  void bring() {
    const bool wasThere = std::exchange(isThere, true);
    if (isHosts) {
      if (!wasThere) CHECK(cudaHostRegister(memory, bytes, 0));
      return;
    }
    if (!wasThere) {
      CUmemAllocationProp properties = exportable();
      properties.location.id = device;
      CUmemGenericAllocationHandle physical;
      CALL(cuMemCreate, &physical, bytes, &properties, 0);
      CALL(cuMemMap, address(), bytes, 0, physical, 0);
      CALL(cuMemRelease, physical);
    }
    if (!isWritable || random.pick(3) == 0) allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  // Unmaps or unregisters it, or reduces access to it; it may be unusable until bring().
  void disturb() {
    waitForAll();
    if (!isThere) return;
    const unsigned how = random.pick(isHosts ? 2 : 4);
    if (isHosts) CHECK(cudaHostUnregister(memory));
    else if (how == 0 || how == 1) CALL(cuMemUnmap, address(), bytes);
    else allow(how == 2 ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE);
    if (isHosts || how < 2) isThere = isWritable = false;
    if (how == 0) bring();
  }
  void put(const std::vector<unsigned>& values) {
    if (isHosts) std::memcpy(memory, values.data(), sizeof(unsigned) * words);
    else CHECK(cudaMemcpy(memory, values.data(), sizeof(unsigned) * words, cudaMemcpyHostToDevice));
    CHECK(cudaStreamSynchronize(cudaStreamLegacy));  // completes before another device uses it
  }
  std::vector<unsigned> get() const {
    std::vector<unsigned> values(words);
    if (isHosts) std::memcpy(values.data(), memory, sizeof(unsigned) * words);
    else CHECK(cudaMemcpy(values.data(), memory, sizeof(unsigned) * words, cudaMemcpyDeviceToHost));
    return values;
  }
  unsigned* at(unsigned word) const { return memory + word; }

  bool isLike(const Piece& other) const { return isHosts == other.isHosts && device == other.device; }

  const bool isHosts;

 private:
  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(memory); }
  void allow(CUmemAccess_flags flags) {
    isWritable = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUmemAccessDesc access{exportable().location, flags};
    for (int each = 0; each < devices; ++each) {
      access.location.id = each;
      if (isWritable || each == devices - 1 || random.pick(2) == 0) CALL(cuMemSetAccess, address(), bytes, &access, 1);
    }
  }

  static constexpr size_t bytes = 2 << 20;  // the granularity of cuMemCreate
  const int device;
  Random& random;
  unsigned* memory = nullptr;
  bool isThere = false, isWritable = false;
};

using Pieces = std::vector<std::unique_ptr<Piece>>;

enum class Kind { fill, copy, kernel, write };

struct Step {
  Kind kind;
  Piece *to, *from;  // from: for copies only
  unsigned toWord, fromWord, value;
  int device;
  bool isEnabled = true;
  cudaGraphNode_t node = nullptr;

  void bring() const {
    to->bring();
    if (kind == Kind::copy) from->bring();
  }
  cudaMemsetParams fill() const {
    cudaMemsetParams params{};
    params.dst = to->at(toWord);
    params.value = value;
    params.elementSize = sizeof(unsigned);
    params.width = params.height = 1;
    return params;
  }
  void withKernel(const std::function<void(cudaKernelNodeParams&)>& use) const {
    unsigned *target = to->at(toWord), more = value;
    void* arguments[]{&target, &more};
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(::add);
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = arguments;
    use(params);
  }
  void withWrite(const std::function<void(CUDA_BATCH_MEM_OP_NODE_PARAMS&)>& use) const {
    CUstreamBatchMemOpParams write{};
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = reinterpret_cast<CUdeviceptr>(to->at(toWord));
    write.writeValue.value = value;
    CUDA_BATCH_MEM_OP_NODE_PARAMS params{};
    CALL(cuCtxGetCurrent, &params.ctx);
    params.count = 1;
    params.paramArray = &write;
    use(params);
  }
  void addTo(cudaGraph_t graph, cudaGraphNode_t before) {
    CHECK(cudaSetDevice(device));
    const size_t count = before == nullptr ? 0 : 1;
    const cudaMemsetParams filled = fill();
    switch (kind) {
      case Kind::fill: CHECK(cudaGraphAddMemsetNode(&node, graph, &before, count, &filled)); break;
      case Kind::copy:
        CHECK(cudaGraphAddMemcpyNode1D(&node, graph, &before, count, to->at(toWord), from->at(fromWord), sizeof(unsigned),
                                       cudaMemcpyDefault));
        break;
      case Kind::kernel: withKernel([&](auto& params) { CHECK(cudaGraphAddKernelNode(&node, graph, &before, count, &params)); }); break;
      case Kind::write: withWrite([&](auto& params) { CALL(cuGraphAddBatchMemOpNode, &node, graph, &before, count, &params); });
    }
  }
  void setIn(cudaGraphExec_t exec) const {
    CHECK(cudaSetDevice(device));
    const cudaMemsetParams filled = fill();
    switch (kind) {
      case Kind::fill: CHECK(cudaGraphExecMemsetNodeSetParams(exec, node, &filled)); break;
      case Kind::copy:
        CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, node, to->at(toWord), from->at(fromWord), sizeof(unsigned), cudaMemcpyDefault));
        break;
      case Kind::kernel: withKernel([&](auto& params) { CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &params)); }); break;
      case Kind::write: withWrite([&](auto& params) { CALL(cuGraphExecBatchMemOpNodeSetParams, exec, node, &params); });
    }
  }
};

class Graph {
 public:
  Graph(Random& random, Pieces& pieces) : random(random), pieces(pieces) {
    for (unsigned i = 0, count = 1 + random.pick(5); i < count; ++i) steps.push_back(newStep(static_cast<Kind>(random.pick(4))));
    graph = made(steps);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
  }
  ~Graph() {
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void change() {
    Step& step = steps[random.pick(steps.size())];
    if (step.kind != Kind::write && random.pick(3) == 0) {
      step.isEnabled = !step.isEnabled;
      CHECK(cudaGraphNodeSetEnabled(exec, step.node, step.isEnabled));
    } else {
      step = changed(step);
      step.setIn(exec);
    }
  }
  void update() {
    std::vector<Step> others;
    for (auto& step : steps) others.push_back(changed(step));
    const std::vector<Step> now = others;  // keeps the nodes of the instantiated graph
    const cudaGraph_t other = made(others);
    cudaGraphExecUpdateResultInfo info{};
    CHECK(cudaGraphExecUpdate(exec, other, &info));
    CHECK(cudaGraphDestroy(other));
    steps = now;
  }
  bool works() {
    std::vector<std::vector<unsigned>> expected;
    for (auto& piece : pieces) {
      auto& values = expected.emplace_back(words);
      for (unsigned& value : values) value = random.pick(1000);
      piece->bring();
      piece->put(values);
    }
    auto wordOf = [&](const Piece* piece, unsigned word) -> unsigned& {
      size_t i = 0;
      while (pieces[i].get() != piece) ++i;
      return expected[i][word];
    };
    for (auto& step : steps) {
      if (!step.isEnabled) continue;
      unsigned& to = wordOf(step.to, step.toWord);
      to = step.kind == Kind::copy ? wordOf(step.from, step.fromWord) : step.kind == Kind::kernel ? to + step.value : step.value;
    }
    CHECK(cudaSetDevice(random.pick(devices)));
    CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
    if (!EXPECT_ERROR(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess)) return false;
    bool ok = true;
    for (size_t i = 0; i < pieces.size(); ++i) ok &= same("a piece", pieces[i]->get(), expected[i]);
    return ok;
  }

 private:
  Piece* pick() { return pieces[random.pick(pieces.size())].get(); }
  // A copy has at least one end in device memory; other nodes use device memory only.
  Step newStep(Kind kind) {
    Step step{kind, pick(), pick(), random.pick(words), random.pick(words), 1 + random.pick(100), static_cast<int>(random.pick(devices))};
    while (kind != Kind::copy && step.to->isHosts) step.to = pick();
    while (step.from == step.to || (step.to->isHosts && step.from->isHosts)) step.from = pick();
    step.bring();
    return step;
  }
  // A random step that an executable graph accepts in place of `step`: of the same kind and device, with like memory; `step` itself if the
  // random choice does not fit. Brings the memory of both: the memory of a copy must exist when its node is set.
  Step changed(const Step& step) {
    step.bring();
    Step other = newStep(step.kind);
    if (!other.to->isLike(*step.to) || !other.from->isLike(*step.from)) return step;
    other.device = step.device;
    other.node = step.node;
    other.isEnabled = step.isEnabled;
    return other;
  }
  static cudaGraph_t made(std::vector<Step>& of) {
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t last = nullptr;
    for (auto& step : of) {
      step.bring();
      step.addTo(graph, last);
      last = step.node;
    }
    return graph;
  }

  Random& random;
  Pieces& pieces;
  std::vector<Step> steps;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
};

class World {
 public:
  explicit World(unsigned seed) : random(seed) {
    for (unsigned i = 0; i < 6; ++i) pieces.push_back(std::make_unique<Piece>(random, devices == 1 && i >= 4));
    for (int i = 0; i < 60; ++i) live();
  }
  bool works() {
    for (auto& graph : graphs) ok &= graph->works();
    for (int i = 0; i < 4 && !graphs.empty(); ++i) {
      any().change();
      ok &= any().works();
    }
    return ok;
  }

 private:
  Graph& any() { return *graphs[random.pick(graphs.size())]; }
  void live() {
    const unsigned what = random.pick(8);
    if (what == 0 && graphs.size() < 10) graphs.push_back(std::make_unique<Graph>(random, pieces));
    else if (what > 4) pieces[random.pick(pieces.size())]->disturb();
    else if (graphs.empty()) return;
    else if (what < 3) any().change();
    else if (what == 3) any().update();
    else ok &= any().works();
  }

  Random random;
  Pieces pieces;
  std::vector<std::unique_ptr<Graph>> graphs;
  bool ok = true;
};

}  // namespace

int main(int argc, char** argv) {
  const unsigned first = argc > 1 ? std::atoi(argv[1]) : 1, count = argc > 2 ? std::atoi(argv[2]) : 1;
  int present = 0, reaches = 0;
  CHECK(cudaGetDeviceCount(&present));
  if (present > 1) CHECK(cudaDeviceCanAccessPeer(&reaches, 0, 1));
  devices += reaches;
  waitForAll();  // creates their contexts
  std::vector<std::unique_ptr<World>> worlds;
  for (unsigned i = 0; i < count; ++i) worlds.push_back(std::make_unique<World>(first + i));
  waitForAll();
  pausePoint();
  bool ok = true;
  for (auto& world : worlds) ok &= world->works();
  worlds.clear();
  return verdict("random-mappings", ok);
}
