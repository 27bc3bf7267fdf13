// Graphs launched from kernels (CUDA Programming Guide, "Device Graph Launch"; nvcc -rdc=true): fire-and-forget, as tail launches, and as
// siblings; loops; a scheduler that selects graphs; launches that are refused. The graphs' handles are kept in device memory.
#include <memory>

#include "kernel-node.h"

constexpr int notTried = cudaErrorUnknown;

// ---- Kernels of the graphs.
__device__ unsigned noteCount, notes[64];
__global__ void note(unsigned what) { notes[atomicAdd(&noteCount, 1)] = what; }
__global__ void add(unsigned* to, unsigned value) { atomicAdd(to, value); }
__global__ void store(unsigned* to, const unsigned* from) { *to = *from; }
__global__ void await(const volatile unsigned* word) {
  while (*word == 0) {
  }
}

// ---- Kernels that launch graphs.
__global__ void launchTwo(const cudaGraphExec_t* graphs, int* errors) {
  errors[0] = cudaGraphLaunch(graphs[0], cudaStreamGraphFireAndForget);
  errors[1] = cudaGraphLaunch(graphs[1], cudaStreamGraphFireAndForget);
  errors[2] = cudaGraphLaunch(graphs[2], cudaStreamGraphTailLaunch);
}
__global__ void launchBeside(const cudaGraphExec_t* graph, int* error) {
  *error = cudaGraphLaunch(*graph, cudaStreamGraphFireAndForget);
}
__global__ void launchSibling(const cudaGraphExec_t* graphs, int* errors) {
  errors[0] = cudaGraphLaunch(graphs[0], cudaStreamGraphFireAndForgetAsSibling);
  errors[1] = cudaGraphLaunch(graphs[1], cudaStreamGraphTailLaunch);
}
__global__ void launchBehind(const cudaGraphExec_t* graphs, int count, int* errors, unsigned what) {
  notes[atomicAdd(&noteCount, 1)] = what;
  for (int i = 0; i < count; ++i) errors[i] = cudaGraphLaunch(graphs[i], cudaStreamGraphTailLaunch);
}
__global__ void countTo(unsigned most, unsigned* counter, int* error) {
  if (++*counter < most) *error = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}
__global__ void schedule(const cudaGraphExec_t* graphs, const unsigned* jobs, unsigned count, unsigned* next, int* error) {
  if (*next == count) return;
  *error = cudaGraphLaunch(graphs[jobs[(*next)++]], cudaStreamGraphFireAndForget);
  if (*error == cudaSuccess) *error = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}
__global__ void launchMany(const cudaGraphExec_t* graphs, int count, int* errors) {
  const int self = blockIdx.x * blockDim.x + threadIdx.x;
  if (self < count) errors[self] = cudaGraphLaunch(graphs[self], cudaStreamGraphFireAndForget);
}
__global__ void askCurrent(cudaGraphExec_t* current) { *current = cudaGetCurrentGraphExec(); }
__global__ void launchOutside(const cudaGraphExec_t* graph, unsigned* marks) {
  marks[0] = 1;
  marks[2] = cudaGraphLaunch(*graph, cudaStreamGraphFireAndForget);
  marks[1] = 1;
}

struct Impossible {
  cudaGraphExec_t notUploaded, none, running;
};
__global__ void launchImpossible(const Impossible* graphs, volatile unsigned* word, int* errors) {
  errors[0] = cudaGraphLaunch(graphs->notUploaded, cudaStreamGraphFireAndForget);
  errors[1] = cudaGraphLaunch(graphs->none, cudaStreamGraphTailLaunch);
  errors[2] = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphFireAndForget);
  errors[3] = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphFireAndForgetAsSibling);
  errors[4] = cudaGraphLaunch(graphs->running, cudaStreamGraphFireAndForget);
  errors[5] = cudaGraphLaunch(graphs->running, cudaStreamGraphFireAndForget);
  *word = 1;
}

namespace {

class Graph {
 public:
  Graph() { CHECK(cudaGraphCreate(&graph, 0)); }
  ~Graph() {
    if (executable != nullptr) CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
  }
  Graph(const Graph&) = delete;
  operator cudaGraph_t() const { return graph; }
  // Adds a kernel behind the last node.
  template <typename... Arguments>
  Graph& kernel(void (*function)(Arguments...), Arguments... arguments) {
    last = last == nullptr ? addKernel(graph, {}, function, arguments...) : addKernel(graph, {last}, function, arguments...);
    return *this;
  }
  Graph& fill(void* to, unsigned value) {
    cudaMemsetParams params{};
    params.dst = to;
    params.value = value;
    params.elementSize = 4;
    params.width = params.height = 1;
    return added([&](cudaGraphNode_t* node, const cudaGraphNode_t* before, size_t count) {
      return cudaGraphAddMemsetNode(node, graph, before, count, &params);
    });
  }
  Graph& copy(void* to, const void* from) {
    return added([&](cudaGraphNode_t* node, const cudaGraphNode_t* before, size_t count) {
      return cudaGraphAddMemcpyNode1D(node, graph, before, count, to, from, 4, cudaMemcpyDefault);
    });
  }
  Graph& child(const Graph& other) {
    return added([&](cudaGraphNode_t* node, const cudaGraphNode_t* before, size_t count) {
      return cudaGraphAddChildGraphNode(node, graph, before, count, other);
    });
  }
  // Makes it a graph that kernels can launch once it is uploaded.
  cudaGraphExec_t forKernels() {
    CHECK(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagDeviceLaunch));
    return executable;
  }
  cudaGraphExec_t uploaded() {
    CHECK(cudaGraphUpload(forKernels(), nullptr));
    CHECK(cudaStreamSynchronize(nullptr));
    return executable;
  }
  void run() {
    if (executable == nullptr) CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, nullptr));
  }

 private:
  template <typename Add>
  Graph& added(Add add) {
    cudaGraphNode_t node = nullptr;
    CHECK(add(&node, &last, last == nullptr ? 0 : 1));
    last = node;
    return *this;
  }
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t last = nullptr;
  cudaGraphExec_t executable = nullptr;
};

using Handles = DeviceArray<cudaGraphExec_t>;
std::vector<int> successes(size_t count) { return std::vector<int>(count, cudaSuccess); }

// Graphs with one kernel each, which adds to a word.
struct Adders {
  explicit Adders(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      graphs.push_back(std::make_unique<Graph>());
      graphs.back()->kernel<unsigned*, unsigned>(add, sum, 1u << (i % 20));
    }
  }
  std::vector<cudaGraphExec_t> upload() {
    std::vector<cudaGraphExec_t> handles;
    for (auto& graph : graphs) handles.push_back(graph->uploaded());
    return handles;
  }
  unsigned take() {
    const unsigned taken = sum.download()[0];
    sum.upload({0});
    return taken;
  }
  DeviceArray<unsigned> sum{std::vector<unsigned>{0}};
  std::vector<std::unique_ptr<Graph>> graphs;
};

// ---- Two fire-and-forget graphs with every type of node that a device graph can have; the tail graph sees the results of all, and so does
// the host's next work.
struct Beside {
  Beside() {
    Graph part;
    part.kernel<unsigned*, unsigned>(add, words + 1, 2u);
    graphs[0].fill(words, 100).kernel<unsigned*, unsigned>(add, words, 5u).copy(words + 1, words).child(part);
    graphs[1].kernel<unsigned*, unsigned>(add, words + 2, 7u).kernel<unsigned*, const unsigned*>(store, words + 3, words + 2);
    graphs[2].kernel<unsigned*, const unsigned*>(store, words + 4, words + 1).kernel<unsigned*, const unsigned*>(store, words + 5, words + 3);
    handles.upload({graphs[0].uploaded(), graphs[1].uploaded(), graphs[2].uploaded()});
    root.kernel<const cudaGraphExec_t*, int*>(launchTwo, handles, errors).kernel<unsigned*, unsigned>(add, words + 6, 1u);
  }
  bool check() {
    words.upload(std::vector<unsigned>(8));
    errors.upload(std::vector<int>(3, notTried));
    for (int i = 0; i < 2; ++i) root.run();
    store<<<1, 1>>>(words + 7, words + 5);
    CHECK(cudaGetLastError());
    return same("beside", words.download(), {105, 107, 14, 14, 107, 14, 2, 14}) & same("of beside", errors.download(), successes(3));
  }
  DeviceArray<unsigned> words{8};
  DeviceArray<int> errors{3};
  Handles handles{3};
  Graph graphs[3], root;
};

// ---- A sibling graph belongs to the environment of the graph around the launching one: the outer graph's tail launch waits for the
// sibling, and the launching graph's own tail launch does not.
struct Sibling {
  Sibling() {
    sibling.kernel<const volatile unsigned*>(await, words).kernel<unsigned*, unsigned>(add, words + 1, 4u);
    near.kernel<unsigned*, unsigned>(add, words, 1u);
    far.kernel<unsigned*, const unsigned*>(store, words + 2, words + 1);
    inner.upload({sibling.uploaded(), near.uploaded()});
    middle.kernel<const cudaGraphExec_t*, int*>(launchSibling, inner, errors);
    outer.upload({middle.uploaded(), far.uploaded()});
    root.kernel<const cudaGraphExec_t*, int*>(launchBeside, outer, errors + 2);
    root.kernel<const cudaGraphExec_t*, int, int*, unsigned>(launchBehind, outer + 1, 1, errors + 3, 0u);
    root.forKernels();
  }
  bool check() {
    words.upload({0, 0, 0});
    root.run();
    return same("siblings", words.download(), {1, 4, 4}) & same("of siblings", errors.download(), successes(4));
  }
  DeviceArray<unsigned> words{3};
  DeviceArray<int> errors{std::vector<int>(4, notTried)};
  Handles inner{2}, outer{2};
  Graph sibling, near, far, middle, root;
};

// ---- Tail launches: in the order of the calls, but a tail launch of one of them runs before the next.
struct Order {
  Order() {
    third.kernel<unsigned>(note, 3);
    below.upload({third.uploaded()});
    second.kernel<const cudaGraphExec_t*, int, int*, unsigned>(launchBehind, below, 1, errors, 2u);
    fourth.kernel<unsigned>(note, 4);
    handles.upload({second.uploaded(), fourth.uploaded()});
    first.kernel<const cudaGraphExec_t*, int, int*, unsigned>(launchBehind, handles, 2, errors + 1, 1u);
  }
  bool check() {
    const unsigned none = 0;
    CHECK(cudaMemcpyToSymbol(noteCount, &none, sizeof none));
    for (int i = 0; i < 2; ++i) first.run();
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned> got(8);
    unsigned count = 0;
    CHECK(cudaMemcpyFromSymbol(&count, noteCount, sizeof count));
    CHECK(cudaMemcpyFromSymbol(got.data(), notes, got.size() * sizeof(unsigned)));
    return EXPECT(count == 8) & same("order", got, {1, 2, 3, 4, 1, 2, 3, 4}) & same("of the order", errors.download(), successes(3));
  }
  DeviceArray<int> errors{std::vector<int>(3, notTried)};
  Handles below{1}, handles{2};
  Graph first, second, third, fourth;
};

// ---- A loop: a graph that tail-launches itself. And a scheduler, which takes one job at a time and launches the graph that it names.
struct Loops {
  explicit Loops(unsigned times) : times(times) {
    loop.kernel<unsigned, unsigned*, int*>(countTo, times, words, errors);
    loop.forKernels();
    handles.upload(adders.upload());
    scheduler.kernel<const cudaGraphExec_t*, const unsigned*, unsigned, unsigned*, int*>(schedule, handles, jobs, 7u, words + 1,
                                                                                        errors + 1);
    scheduler.forKernels();
  }
  bool check() {
    words.upload({0, 0});
    loop.run();
    scheduler.run();
    CHECK(cudaDeviceSynchronize());
    return same("rounds and jobs", words.download(), {times, 7}) & same("of loops", errors.download(), successes(2)) &
           EXPECT(adders.take() == 4 + 4 + 1 + 2 + 4 + 1 + 1);
  }
  const unsigned times;
  DeviceArray<unsigned> words{2}, jobs{std::vector<unsigned>{2, 2, 0, 1, 2, 0, 0}};
  DeviceArray<int> errors{std::vector<int>(2, notTried)};
  Adders adders{3};
  Handles handles{3};
  Graph loop, scheduler;
};

// ---- Launches from many threads at once, each of its own graph.
struct Many {
  Many() {
    handles.upload(adders.upload());
    cudaKernelNodeParams params{};
    const cudaGraphExec_t* graphs = handles;
    int count = 40, *answers = errors;
    void* pointers[] = {&graphs, &count, &answers};
    params.func = reinterpret_cast<void*>(launchMany);
    params.gridDim = dim3(3);
    params.blockDim = dim3(16);
    params.kernelParams = pointers;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, root, nullptr, 0, &params));
  }
  bool check() {
    root.run();
    CHECK(cudaDeviceSynchronize());
    return EXPECT(adders.take() == 2 * ((1u << 20) - 1)) & same("of threads", errors.download(), successes(40));
  }
  Adders adders{40};
  DeviceArray<int> errors{std::vector<int>(40, notTried)};
  Handles handles{40};
  Graph root;
};

// ---- The current graph of a kernel: none, a host graph, or a device graph.
struct Current {
  Current() {
    inHosts.kernel<cudaGraphExec_t*>(askCurrent, current + 1);
    inOther.kernel<cudaGraphExec_t*>(askCurrent, current + 2);
    handle = inOther.forKernels();
  }
  bool check() {
    current.upload(std::vector<cudaGraphExec_t>(3, handle));
    askCurrent<<<1, 1>>>(current);
    inHosts.run();
    inOther.run();
    const std::vector<cudaGraphExec_t> got = current.download();
    return EXPECT(got[0] == nullptr) & EXPECT(got[1] == nullptr) & EXPECT(got[2] == handle);
  }
  Handles current{3};
  cudaGraphExec_t handle = nullptr;
  Graph inHosts, inOther;
};

// ---- Launches that are refused, and from where: outside of a graph a kernel that launches graphs cannot be launched.
struct Errors {
  Errors() {
    notUploaded.kernel<unsigned>(note, 0);
    waits.kernel<const volatile unsigned*>(await, word);
    root.kernel<const Impossible*, volatile unsigned*, int*>(launchImpossible, graphs, word, errors);
    root.forKernels();
    graphs.upload({{notUploaded.forKernels(), reinterpret_cast<cudaGraphExec_t>(static_cast<unsigned*>(zeros)), waits.uploaded()}});
  }
  bool check() {
    word.upload({0});
    errors.upload(std::vector<int>(6, notTried));
    root.run();
    CHECK(cudaDeviceSynchronize());
    const int wrong = cudaErrorInvalidValue;
    bool ok = same("errors", errors.download(), {wrong, wrong, wrong, wrong, cudaSuccess, wrong});
    marks.upload({0, 0, 99});
    launchOutside<<<1, 1>>>(&static_cast<const Impossible*>(graphs)->running, marks);
    // A session gets the error from the driver, and returns it at the next call that waits.
    const cudaError_t launched = cudaGetLastError(), waited = cudaDeviceSynchronize();
    (void)cudaGetLastError();
    ok &= EXPECT((launched == cudaErrorNotSupported) != (waited == cudaErrorNotSupported));
    return ok & same("outside", marks.download(), {0, 0, 99});
  }
  DeviceArray<unsigned> word{1}, zeros{std::vector<unsigned>(1024)}, marks{3};
  DeviceArray<int> errors{6};
  DeviceArray<Impossible> graphs{1};
  Graph notUploaded, waits, root;
};

// ---- Device graphs may only contain kernels, fills, copies between device and pinned memory, and child graphs.
void CUDART_CB nothing(void*) {}

bool refused(cudaGraph_t graph, unsigned long long flags = 0) {
  cudaGraphExec_t made = nullptr;
  return EXPECT_ERROR(cudaGraphInstantiate(&made, graph, flags | cudaGraphInstantiateFlagDeviceLaunch), cudaErrorInvalidValue) &
         EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
}

bool refuses() {
  DeviceArray<unsigned> word(1);
  cudaGraphNode_t node = nullptr;
  Graph none, empty, host, event, pageable, kernel;
  bool ok = refused(none);
  CHECK(cudaGraphAddEmptyNode(&node, empty, nullptr, 0));
  ok &= refused(empty);
  unsigned local = 0;
  pageable.copy(&local, word);
  ok &= refused(pageable);
  cudaEvent_t recorded;
  CHECK(cudaEventCreate(&recorded));
  CHECK(cudaGraphAddEventRecordNode(&node, event, nullptr, 0, recorded));
  ok &= refused(event);
  CHECK(cudaEventDestroy(recorded));
  kernel.kernel<unsigned>(note, 0);
  ok &= refused(kernel, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  cudaHostNodeParams function{nothing, nullptr};
  CHECK(cudaGraphAddHostNode(&node, host, nullptr, 0, &function));
  ok &= refused(host);
  cudaGraphExec_t made = nullptr;
  cudaGraphInstantiateParams params{};
  params.flags = cudaGraphInstantiateFlagDeviceLaunch;
  ok &= EXPECT_ERROR(cudaGraphInstantiateWithParams(&made, host, &params), cudaErrorInvalidValue);
  ok &= EXPECT(params.result_out == cudaGraphInstantiateNodeOperationNotSupported) & EXPECT(params.errNode_out == node);
  (void)cudaGetLastError();
  return ok;
}

// Instantiated and uploaded in one call; launched twice, and destroyed.
bool uploadsAtOnce() {
  DeviceArray<unsigned> word(std::vector<unsigned>{0});
  DeviceArray<int> error(std::vector<int>{notTried});
  Graph graph, root;
  graph.kernel<unsigned*, unsigned>(add, word, 6u);
  cudaGraphExec_t made = nullptr;
  cudaGraphInstantiateParams params{};
  params.flags = cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUpload;
  CHECK(cudaGraphInstantiateWithParams(&made, graph, &params));
  Handles handle(std::vector<cudaGraphExec_t>{made});
  root.kernel<const cudaGraphExec_t*, int*>(launchBeside, handle, error);
  for (int i = 0; i < 2; ++i) root.run();
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaGraphExecDestroy(made));
  return EXPECT(params.result_out == cudaGraphInstantiateSuccess) & same("word", word.download(), {12}) &
         same("of the launch", error.download(), {cudaSuccess});
}

}  // namespace

int main() {
  Beside beside;
  Sibling sibling;
  Order order;
  auto gone = std::make_unique<Loops>(3);  // so that later handles are not in the order of their creation
  Loops loops(40);
  bool ok = gone->check();
  gone.reset();
  Many many;
  Current current;
  Errors errors;
  const auto checkAll = [&] {
    return beside.check() & sibling.check() & order.check() & loops.check() & many.check() & current.check() & errors.check();
  };
  ok &= checkAll() & refuses() & uploadsAtOnce();
  pausePoint();
  ok &= checkAll() & refuses() & uploadsAtOnce();
  return verdict("device-graphs", ok);
}
