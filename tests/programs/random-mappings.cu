// Random executable graphs over memory that is mapped, or registered, and has been changed since they were made: nodes set to other
// memory, enabled and disabled, whole updates; the memory unmapped and mapped again, kept from its device, unregistered and registered
// again. At the pause any of it may be away. Afterwards all of it is there again, and each graph does what it was last told.
//
// Arguments: the first seed, and how many worlds there are.
#include <sys/mman.h>

#include <functional>
#include <memory>
#include <random>

#include "shared-physical.h"

namespace {

constexpr unsigned words = 16;  // of each piece that are used

__global__ void add(unsigned* to, unsigned value) { *to += value; }

struct Random {
  explicit Random(unsigned seed) : numbers(seed) {}
  unsigned pick(size_t count) { return numbers() % count; }
  std::mt19937 numbers;
};

// A piece of memory at an address that stays: mapped, of the device; or the program's own, registered.
class Piece {
 public:
  Piece(Random& random, bool isHosts) : isHosts(isHosts), random(random) {
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

  // So that graphs may use it.
  void bring() {
    const bool wasThere = std::exchange(isThere, true);
    if (isHosts) {
      if (!wasThere) CHECK(cudaHostRegister(memory, bytes, 0));
      return;
    }
    if (!wasThere) {
      const CUmemAllocationProp properties = exportable();
      CUmemGenericAllocationHandle physical;
      CALL(cuMemCreate, &physical, bytes, &properties, 0);
      CALL(cuMemMap, address(), bytes, 0, physical, 0);
      CALL(cuMemRelease, physical);
    }
    if (!isWritable || random.pick(3) == 0) allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  // Something is done to it; it may not be there afterwards.
  void disturb() {
    CHECK(cudaDeviceSynchronize());
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
  }
  std::vector<unsigned> get() const {
    std::vector<unsigned> values(words);
    if (isHosts) std::memcpy(values.data(), memory, sizeof(unsigned) * words);
    else CHECK(cudaMemcpy(values.data(), memory, sizeof(unsigned) * words, cudaMemcpyDeviceToHost));
    return values;
  }
  unsigned* at(unsigned word) const { return memory + word; }

  const bool isHosts;

 private:
  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(memory); }
  void allow(CUmemAccess_flags flags) {
    const CUmemAccessDesc access{exportable().location, flags};
    CALL(cuMemSetAccess, address(), bytes, &access, 1);
    isWritable = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }

  static constexpr size_t bytes = 2 << 20;  // a device's granularity
  Random& random;
  unsigned* memory = nullptr;
  bool isThere = false, isWritable = false;
};

using Pieces = std::vector<std::unique_ptr<Piece>>;

enum class Kind { fill, copy, kernel, write };

struct Step {
  Kind kind;
  Piece *to, *from;  // from: of a copy
  unsigned toWord, fromWord, value;
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
    const std::vector<Step> now = others;  // with the nodes of the graph that the executable one was made of
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
    CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
    if (!EXPECT_ERROR(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess)) return false;
    bool ok = true;
    for (size_t i = 0; i < pieces.size(); ++i) ok &= same("a piece", pieces[i]->get(), expected[i]);
    return ok;
  }

 private:
  Piece* pick(bool isHosts) {
    for (;;)
      if (Piece* piece = pieces[random.pick(pieces.size())].get(); piece->isHosts == isHosts) return piece;
  }
  // A copy is between two pieces, of which one is the device's; all else is done to the device's.
  Step newStep(Kind kind) {
    const unsigned ends = kind == Kind::copy ? random.pick(3) : 0;
    return newStep(kind, ends == 1, ends == 2);
  }
  Step newStep(Kind kind, bool isToHost, bool isFromHost) {
    Step step{kind, pick(isToHost), pick(isFromHost), random.pick(words), random.pick(words), 1 + random.pick(100)};
    while (step.from == step.to) step.from = pick(isFromHost);
    step.bring();
    return step;
  }
  // Another one of its kind, with ends of its kinds, as an executable graph takes it. The memory of a copy is there when it is changed.
  Step changed(const Step& step) {
    if (step.kind == Kind::copy) step.bring();
    Step other = newStep(step.kind, step.to->isHosts, step.from->isHosts);
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
    for (unsigned i = 0; i < 6; ++i) pieces.push_back(std::make_unique<Piece>(random, i >= 4));
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
  CHECK(cudaFree(nullptr));
  std::vector<std::unique_ptr<World>> worlds;
  for (unsigned i = 0; i < count; ++i) worlds.push_back(std::make_unique<World>(first + i));
  CHECK(cudaDeviceSynchronize());
  pausePoint();
  bool ok = true;
  for (auto& world : worlds) ok &= world->works();
  worlds.clear();
  return verdict("random-mappings", ok);
}
