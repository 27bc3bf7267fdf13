// Updates of executable graphs from another graph: memory nodes, fills, copies, host functions and events; and setters for array copies.
#include "../memory-node.h"
#include "graph-updates.h"

// ---- Memory nodes: an allocation, a store to it, a copy from it, a free.
namespace {

struct Memory {
  explicit Memory(const char* name, int value, size_t bytes = 1024, bool frees = true) : of(newGraph()) {
    cudaMemAllocNodeParams parameters = memoryNode(bytes);
    CHECK(cudaGraphAddMemAllocNode(&alloc, of, nullptr, 0, &parameters));
    place = static_cast<int*>(parameters.dptr);
    stored = addKernel(of, {alloc}, store, place, value);
    CHECK(cudaGraphAddMemcpyNode1D(&copied, of, &stored, 1, others, place, sizeof(int), cudaMemcpyDeviceToDevice));
    if (frees) CHECK(cudaGraphAddMemFreeNode(&freed, of, &copied, 1, place));
    int i = 0;
    for (cudaGraphNode_t each : {alloc, stored, copied, freed}) {
      const char* parts[] = {" alloc", " store", " copy", " free"};
      if (each != nullptr) names[each] = std::string(name) + parts[i];
      ++i;
    }
  }
  cudaGraph_t of;
  int* place = nullptr;
  cudaGraphNode_t alloc = nullptr, stored = nullptr, copied = nullptr, freed = nullptr;
};
void showOther(cudaGraphExec_t of) {
  clear();
  runs(of);
  sayWords("others", others, {0});
}
unsigned long long used() {
  unsigned long long bytes = 0;
  CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
  return bytes;
}

}  // namespace

SECTION(memoryByItself) {
  setUp();
  Memory first("first", 1);
  CHECK(cudaGraphInstantiate(&executable, first.of, 0));
  updateBy("itself", executable, first.of);
  showOther(executable);
  TRY(cudaGraphNodeSetEnabled(executable, first.alloc, 0));
  unsigned enabled = 9;
  TRY(cudaGraphNodeGetEnabled(executable, first.freed, &enabled));
}

SECTION(memoryByAnother) {
  setUp();
  Memory first("first", 1), second("second", 2), third("third", 3);
  CHECK(cudaGraphInstantiate(&executable, first.of, 0));
  showOther(executable);
  VALUE(first.place == second.place);
  updateBy("another", executable, second.of);
  showOther(executable);
  cudaGraphExec_t made = nullptr;
  TRY(cudaGraphInstantiate(&made, second.of, 0));
  TRY(cudaGraphInstantiate(&made, first.of, 0));
  if (made != nullptr) showOther(made);
  updateBy("the first again", executable, first.of);
  updateBy("a third", executable, third.of);
  showOther(executable);
  TRY(cudaGraphExecDestroy(executable));
  TRY(cudaGraphInstantiate(&executable, third.of, 0));
  updateBy("back to the second", executable, second.of);
  showOther(executable);
}

SECTION(memoryInstantiatedElsewhere) {
  setUp();
  Memory first("first", 1), second("second", 2);
  cudaGraphExec_t other;
  CHECK(cudaGraphInstantiate(&executable, first.of, 0));
  CHECK(cudaGraphInstantiate(&other, second.of, 0));
  updateBy("one that is instantiated", executable, second.of);
  showOther(executable);
  CHECK(cudaGraphExecDestroy(other));
  updateBy("when that has ended", executable, second.of);
  showOther(executable);
}

SECTION(memoryOfOtherSizes) {
  setUp();
  Memory first("first", 1), larger("larger", 2, 1 << 20), smaller("smaller", 3, 64);
  CHECK(cudaGraphInstantiate(&executable, first.of, 0));
  updateBy("larger", executable, larger.of);
  showOther(executable);
  updateBy("smaller", executable, smaller.of);
  showOther(executable);
}

SECTION(memoryThatStays) {
  setUp();
  Memory first("first", 1, 1024, false), second("second", 2, 1024, false), freeing("freeing", 3);
  CHECK(cudaGraphInstantiate(&executable, first.of, 0));
  showOther(executable);
  VALUE(used() != 0);
  updateBy("while it is allocated", executable, second.of);
  showOther(executable);
  TRY(cudaFree(first.place));
  TRY(cudaFree(second.place));
  showOther(executable);
  TRY(cudaFree(first.place));
  TRY(cudaFree(second.place));
  updateBy("when it is free", executable, second.of);
  showOther(executable);
  TRY(cudaFree(first.place));
  TRY(cudaFree(second.place));
  updateBy("one that frees", executable, freeing.of);
  CHECK(cudaGraphExecDestroy(executable));
  VALUE(used());
}

SECTION(memoryThatStaysWithFlag) {
  setUp();
  Memory first("first", 1, 1024, false), second("second", 2, 1024, false);
  CHECK(cudaGraphInstantiate(&executable, first.of, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  showOther(executable);
  updateBy("while it is allocated", executable, second.of);
  showOther(executable);
  showOther(executable);
  TRY(cudaFree(first.place));
  TRY(cudaFree(second.place));
}

// A graph that frees memory that another graph allocates.
SECTION(freedElsewhere) {
  setUp();
  Memory first("first", 1, 1024, false), second("second", 2, 1024, false);
  cudaGraph_t frees = newGraph(), freesSecond = newGraph();
  TRY(cudaGraphAddMemFreeNode(&node, frees, nullptr, 0, first.place));
  TRY(cudaGraphAddMemFreeNode(&::second, freesSecond, nullptr, 0, second.place));
  named("free of the first", node), named("free of the second", ::second);
  cudaGraphExec_t allocates, other;
  TRY(cudaGraphInstantiate(&allocates, first.of, 0));
  TRY(cudaGraphInstantiate(&other, second.of, 0));
  TRY(cudaGraphInstantiate(&executable, frees, 0));
  runs(allocates);
  runs(other);
  updateBy("the other", executable, freesSecond);
  runs(executable);
  TRY(cudaFree(second.place));
  TRY(cudaFree(first.place));
  VALUE(used());
}

SECTION(memoryOfOtherShapes) {
  setUp();
  Memory first("first", 1), second("second", 2);
  cudaGraphExec_t made, elsewhere;
  CHECK(cudaGraphInstantiate(&made, first.of, 0));
  CHECK(cudaGraphInstantiate(&elsewhere, second.of, 0));
  cudaGraphNode_t extra;
  CHECK(cudaGraphAddEmptyNode(&extra, second.of, nullptr, 0));
  updateBy("memory that is instantiated, of another shape", made, second.of);
  Memory third("third", 3);
  CHECK(cudaGraphAddEmptyNode(&extra, third.of, nullptr, 0));
  updateBy("memory of another shape", made, third.of);
  TRY(cudaGraphInstantiate(&elsewhere, third.of, 0));
  Memory fourth("fourth", 4);
  updateBy("memory in order", made, fourth.of);
  // After a failed update the memory is free.
  cudaGraph_t alloc = newGraph();
  cudaMemAllocNodeParams parameters = memoryNode(64);
  cudaGraphNode_t node1, node2;
  CHECK(cudaGraphAddMemAllocNode(&node1, alloc, nullptr, 0, &parameters));
  cudaMemsetParams fill = fillOf(parameters.dptr, 1, 4, 2, 1);
  CHECK(cudaGraphAddMemsetNode(&node2, alloc, &node1, 1, &fill));
  cudaGraph_t alloc2 = newGraph();
  CHECK(cudaGraphAddMemAllocNode(&node1, alloc2, nullptr, 0, &parameters));
  fill = fillOf(parameters.dptr, 1, 4, 2, 2, 16);
  CHECK(cudaGraphAddMemsetNode(&node2, alloc2, &node1, 1, &fill));
  names[node2] = "the fill";
  CHECK(cudaGraphInstantiate(&made, alloc, 0));
  updateBy("memory with another fill", made, alloc2);
  TRY(cudaGraphInstantiate(&elsewhere, alloc2, 0));
}

// ---- Nodes of other types, updated from another graph.
namespace {

using Make = std::function<cudaError_t(cudaGraphNode_t*, cudaGraph_t)>;
void changeNodeBy(const char* what, const Make& first, const Make& second, const std::function<void(cudaGraphExec_t)>& show) {
  cudaGraph_t now = newGraph(), wanted = newGraph();
  cudaGraphNode_t one = nullptr, two = nullptr;
  if (!isDone(what, first(&one, now)) || !isDone(what, second(&two, wanted))) return;
  named("first", one), named("second", two);
  cudaGraphExec_t made = nullptr;
  if (!isDone("instantiation", cudaGraphInstantiate(&made, now, 0))) return;
  updateBy(what, made, wanted);
  show(made);
  updateBy("back", made, now);
  show(made);
  CHECK(cudaGraphExecDestroy(made));
}

Make filling(void* place, unsigned value, unsigned elementSize, size_t width, size_t height = 1, size_t pitch = 0) {
  return [=](auto* made, auto to) {
    cudaMemsetParams parameters = fillOf(place, value, elementSize, width, height, pitch);
    return cudaGraphAddMemsetNode(made, to, nullptr, 0, &parameters);
  };
}
Make copying(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return [=](auto* made, auto into) { return cudaGraphAddMemcpyNode1D(made, into, nullptr, 0, to, from, bytes, kind); };
}
Make copyingBox(void* to, void* from, cudaExtent extent, size_t pitch = 32, cudaMemcpyKind kind = cudaMemcpyDeviceToDevice) {
  return [=](auto* made, auto into) {
    cudaMemcpy3DParms parameters = copyOf(to, from, pitch, extent, kind);
    return cudaGraphAddMemcpyNode(made, into, nullptr, 0, &parameters);
  };
}
void showFills(cudaGraphExec_t of) {
  clear();
  pinned[0] = pinned[1] = 0;
  runs(of);
  sayWords("others", others, {0, 1, 2, 3, 4, 8, 9, 10, 16});
  sayWords("pinned", pinned, {0, 1});
}

}  // namespace

SECTION(fillsByAnother) {
  setUp();
  changeNodeBy("value and place", filling(others, 1, 4, 3), filling(others + 1, 2, 4, 3), showFills);
  changeNodeBy("wider", filling(others, 1, 4, 2), filling(others, 2, 4, 20), showFills);
  changeNodeBy("smaller elements", filling(others, 1, 4, 2), filling(others, 2, 1, 5), showFills);
  changeNodeBy("larger elements", filling(others, 1, 1, 4), filling(others, 2, 4, 3), showFills);
  changeNodeBy("a row to rows", filling(others, 1, 4, 2), filling(others, 2, 4, 2, 2, 32), showFills);
  changeNodeBy("value and place of rows", filling(others, 1, 4, 2, 2, 32), filling(others + 1, 2, 4, 2, 2, 32), showFills);
  changeNodeBy("width of rows", filling(others, 1, 4, 2, 2, 32), filling(others, 2, 4, 1, 2, 32), showFills);
  changeNodeBy("number of rows", filling(others, 1, 4, 2, 2, 32), filling(others, 2, 4, 2, 3, 32), showFills);
  changeNodeBy("pitch of rows", filling(others, 1, 4, 2, 2, 32), filling(others, 2, 4, 2, 2, 16), showFills);
  changeNodeBy("elements of rows", filling(others, 1, 4, 2, 2, 32), filling(others, 2, 1, 8, 2, 32), showFills);
  changeNodeBy("pitch of a row", filling(others, 1, 4, 2, 1, 32), filling(others, 2, 4, 2, 1, 16), showFills);
  changeNodeBy("contiguous rows", filling(others, 1, 4, 8, 2, 32), filling(others, 2, 4, 16, 1, 0), showFills);
  changeNodeBy("to pinned memory", filling(others, 1, 4, 2), filling(pinned, 2, 4, 2), showFills);
  changeNodeBy("a large row", filling(others, 1, 4, 2), filling(words, 2, 1, 256), showFills);
}

SECTION(copiesByAnother) {
  setUp();
  auto show = [](cudaGraphExec_t of) {
    for (int i = 0; i < 32; ++i) host[i] = 200 + i, pinned[i] = 300 + i;
    clear();
    for (int i = 0; i < 32; ++i) CHECK(cudaMemset(words + i, i + 1, 1));
    CHECK(cudaDeviceSynchronize());
    runs(of);
    sayWords("others", others, {0, 1, 2, 8, 9, 16});
    sayNumbers("host, pinned", {host[0], host[1], pinned[0], pinned[1]});
  };
  const auto within = cudaMemcpyDeviceToDevice, in = cudaMemcpyHostToDevice, out = cudaMemcpyDeviceToHost, any = cudaMemcpyDefault;
  changeNodeBy("places and bytes", copying(others, words, 4, within), copying(others + 1, words + 8, 8, within), show);
  changeNodeBy("the same, any kind", copying(others, words, 4, within), copying(others, words + 8, 8, any), show);
  changeNodeBy("in from pinned, from another place", copying(others, pinned + 4, 4, in), copying(others + 1, pinned + 8, 8, in), show);
  changeNodeBy("in from pinned, then pageable", copying(others, pinned + 4, 4, in), copying(others, host + 4, 8, in), show);
  changeNodeBy("out to pinned, then pageable", copying(pinned, words, 4, out), copying(host, words, 8, out), show);
  changeNodeBy("within, then in", copying(others, words, 4, within), copying(others, host + 4, 4, in), show);
  changeNodeBy("within, then in from pinned", copying(others, words, 4, within), copying(others, pinned + 4, 4, in), show);
  changeNodeBy("any, then in from pinned", copying(others, words, 4, any), copying(others, pinned + 4, 4, any), show);
  changeNodeBy("in, then out", copying(others, pinned + 4, 4, in), copying(pinned, words, 4, out), show);
  changeNodeBy("between host places", copying(host, pinned + 4, 4, cudaMemcpyHostToHost), copying(host + 1, pinned + 5, 4, cudaMemcpyHostToHost), show);
  changeNodeBy("a row to rows", copying(others, words, 8, within), copyingBox(others, words, make_cudaExtent(8, 2, 1)), show);
  changeNodeBy("rows, the same", copyingBox(others, words, make_cudaExtent(8, 2, 1)), copyingBox(others, words, make_cudaExtent(8, 2, 1)), show);
  changeNodeBy("places of rows", copyingBox(others, words, make_cudaExtent(8, 2, 1)), copyingBox(others + 1, words + 1, make_cudaExtent(8, 2, 1)), show);
  changeNodeBy("width of rows", copyingBox(others, words, make_cudaExtent(8, 2, 1)), copyingBox(others, words, make_cudaExtent(4, 2, 1)), show);
  changeNodeBy("number of rows", copyingBox(others, words, make_cudaExtent(8, 2, 1)), copyingBox(others, words, make_cudaExtent(8, 3, 1)), show);
  changeNodeBy("pitch of rows", copyingBox(others, words, make_cudaExtent(8, 2, 1)), copyingBox(others, words, make_cudaExtent(8, 2, 1), 16), show);
  changeNodeBy("rows to a row", copyingBox(others, words, make_cudaExtent(8, 2, 1)), copyingBox(others, words, make_cudaExtent(8, 1, 1)), show);
  changeNodeBy("contiguous rows", copyingBox(others, words, make_cudaExtent(32, 2, 1)), copying(others, words, 64, within), show);
}

SECTION(copiesOfArrays) {
  setUp();
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr, other = nullptr;
  CHECK(cudaMallocArray(&array, &format, 8, 4));
  CHECK(cudaMallocArray(&other, &format, 8, 4));
  auto from = [](cudaArray_t source, size_t x, size_t width, void* to) -> Make {
    return [=](auto* made, auto into) {
      cudaMemcpy3DParms parameters{};
      parameters.srcArray = source;
      parameters.srcPos = make_cudaPos(x, 0, 0);
      parameters.dstPtr = make_cudaPitchedPtr(to, 32, 8, 4);
      parameters.extent = make_cudaExtent(width, 1, 1);
      parameters.kind = cudaMemcpyDeviceToDevice;
      return cudaGraphAddMemcpyNode(made, into, nullptr, 0, &parameters);
    };
  };
  for (int i = 0; i < 32; ++i) host[i] = 400 + i;
  CHECK(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 4, cudaMemcpyHostToDevice));
  for (int i = 0; i < 32; ++i) host[i] = 500 + i;
  CHECK(cudaMemcpy2DToArray(other, 0, 0, host, 32, 32, 4, cudaMemcpyHostToDevice));
  auto show = [](cudaGraphExec_t of) {
    clear();
    runs(of);
    sayWords("others", others, {0, 1, 2});
  };
  changeNodeBy("the same", from(array, 0, 2, others), from(array, 0, 2, others), show);
  changeNodeBy("another array", from(array, 0, 2, others), from(other, 0, 2, others), show);
  changeNodeBy("another place in it", from(array, 0, 2, others), from(array, 2, 2, others), show);
  changeNodeBy("another place of memory", from(array, 0, 2, others), from(array, 0, 2, others + 1), show);
  changeNodeBy("fewer", from(array, 0, 2, others), from(array, 0, 1, others), show);
  changeNodeBy("memory instead", from(array, 0, 2, others), copying(others, words, 8, cudaMemcpyDeviceToDevice), show);
  changeNodeBy("instead of memory", copying(others, words, 8, cudaMemcpyDeviceToDevice), from(array, 0, 2, others), show);
}

SECTION(setArrays) {
  setUp();
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr, other = nullptr;
  CHECK(cudaMallocArray(&array, &format, 8, 4));
  CHECK(cudaMallocArray(&other, &format, 8, 4));
  for (int i = 0; i < 32; ++i) host[i] = 400 + i;
  CHECK(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 4, cudaMemcpyHostToDevice));
  for (int i = 0; i < 32; ++i) host[i] = 500 + i;
  CHECK(cudaMemcpy2DToArray(other, 0, 0, host, 32, 32, 4, cudaMemcpyHostToDevice));
  auto parametersOf = [](cudaArray_t source, size_t x, size_t y, size_t width, size_t height, void* to, cudaMemcpyKind kind = cudaMemcpyDeviceToDevice) {
    cudaMemcpy3DParms parameters{};
    parameters.srcArray = source;
    parameters.srcPos = make_cudaPos(x, y, 0);
    parameters.dstPtr = make_cudaPitchedPtr(to, 32, 8, 4);
    parameters.extent = make_cudaExtent(width, height, 1);
    parameters.kind = kind;
    return parameters;
  };
  auto set = [&](const char* what, cudaMemcpy3DParms first, cudaMemcpy3DParms second) {
    cudaGraph_t of = newGraph();
    cudaGraphNode_t one;
    cudaGraphExec_t made;
    CHECK(cudaGraphAddMemcpyNode(&one, of, nullptr, 0, &first));
    CHECK(cudaGraphInstantiate(&made, of, 0));
    tried(what, cudaGraphExecMemcpyNodeSetParams(made, one, &second));
    for (int i = 0; i < 32; ++i) host[i] = 200 + i, pinned[i] = 300 + i;
    clear();
    runs(made);
    sayWords("others", others, {0, 1, 2, 8});
    sayNumbers("host, pinned", {host[0], host[1], pinned[0], pinned[1]});
  };
  auto first = parametersOf(array, 0, 0, 2, 1, others);
  set("another array", first, parametersOf(other, 0, 0, 2, 1, others));
  set("another row", first, parametersOf(array, 0, 1, 2, 1, others));
  set("another place of memory", first, parametersOf(array, 0, 0, 2, 1, others + 1));
  set("fewer", first, parametersOf(array, 0, 0, 1, 1, others));
  set("more", first, parametersOf(array, 0, 0, 3, 1, others));
  set("rows", first, parametersOf(array, 0, 0, 2, 2, others));
  set("of rows, one", parametersOf(array, 0, 0, 2, 2, others), first);
  set("of rows, another array", parametersOf(array, 0, 0, 2, 2, others), parametersOf(other, 0, 0, 2, 2, others));
  auto out = parametersOf(array, 0, 0, 2, 1, pinned, cudaMemcpyDeviceToHost);
  set("to pinned memory", first, out);
  set("to pinned, then pageable memory", out, parametersOf(array, 1, 0, 2, 1, host, cudaMemcpyDeviceToHost));
  set("to pageable, then pinned memory", parametersOf(array, 1, 0, 2, 1, host, cudaMemcpyDeviceToHost), out);
  auto between = [&](cudaArray_t to, size_t x) {
    cudaMemcpy3DParms parameters{};
    parameters.srcArray = array;
    parameters.dstArray = to;
    parameters.dstPos = make_cudaPos(x, 0, 0);
    parameters.extent = make_cudaExtent(2, 1, 1);
    parameters.kind = cudaMemcpyDeviceToDevice;
    return parameters;
  };
  set("between arrays", between(other, 0), between(other, 4));
}

SECTION(hostsAndEvents) {
  setUp();
  static int counter;
  auto calls = [](cudaHostFn_t function) -> Make {
    return [=](auto* made, auto to) {
      cudaHostNodeParams parameters{function, &counter};
      return cudaGraphAddHostNode(made, to, nullptr, 0, &parameters);
    };
  };
  changeNodeBy("another function", calls(count), calls(countTen), [](cudaGraphExec_t of) {
    runs(of);
    VALUE(counter);
  });
  static cudaEvent_t one, two;
  CHECK(cudaEventCreateWithFlags(&one, cudaEventDisableTiming));
  CHECK(cudaEventCreate(&two));
  auto records = [](cudaEvent_t* event) -> Make { return [=](auto* made, auto to) { return cudaGraphAddEventRecordNode(made, to, nullptr, 0, *event); }; };
  auto waits = [](cudaEvent_t* event) -> Make { return [=](auto* made, auto to) { return cudaGraphAddEventWaitNode(made, to, nullptr, 0, *event); }; };
  changeNodeBy("another event", records(&one), records(&two), runs);
  changeNodeBy("a wait for another", waits(&one), waits(&two), runs);
  changeNodeBy("a record, then a wait", records(&one), waits(&one), runs);
  auto empty = [](auto* made, auto to) { return cudaGraphAddEmptyNode(made, to, nullptr, 0); };
  changeNodeBy("empty", empty, empty, runs);
  changeNodeBy("empty, then a function", empty, calls(count), runs);
}
