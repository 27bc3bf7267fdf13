// Memory of an allocation node in fills and copies: that of a graph that also frees it is that graph's own, other memory is anyone's.
#include "graph-updates.h"

namespace {

// An allocation, then a node for each letter (k: a kernel that stores there, f: a fill, i and o: a copy into it and out of it), maybe a free.
struct Memory {
  Memory(const char* letters, bool frees, int value = 1, size_t bytes = 16) : of(newGraph()) {
    cudaMemAllocNodeParams parameters{};
    parameters.poolProps.allocType = cudaMemAllocationTypePinned;
    parameters.poolProps.location.type = cudaMemLocationTypeDevice;
    parameters.bytesize = bytes;
    cudaGraphNode_t last;
    CHECK(cudaGraphAddMemAllocNode(&last, of, nullptr, 0, &parameters));
    place = static_cast<int*>(parameters.dptr);
    for (const char* letter = letters; *letter != 0; ++letter) {
      cudaGraphNode_t made = nullptr;
      cudaMemsetParams fill = fillOf(place, static_cast<unsigned>(value), 4, 1);
      if (*letter == 'k') made = named("the kernel", addKernel(of, {last}, store, place, value));
      if (*letter == 'f') CHECK(cudaGraphAddMemsetNode(&made, of, &last, 1, &fill)), named("the fill", made);
      if (*letter == 'i') CHECK(cudaGraphAddMemcpyNode1D(&made, of, &last, 1, place, words, 4, cudaMemcpyDeviceToDevice)), named("the copy", made);
      if (*letter == 'o') CHECK(cudaGraphAddMemcpyNode1D(&made, of, &last, 1, words, place, 4, cudaMemcpyDeviceToDevice)), named("the copy", made);
      if (first == nullptr) first = made;
      last = made;
    }
    cudaGraphNode_t freed;
    if (frees) CHECK(cudaGraphAddMemFreeNode(&freed, of, &last, 1, place));
  }
  cudaGraph_t of;
  int* place = nullptr;
  cudaGraphNode_t first = nullptr;  // behind the allocation
};

// An executable graph for as long as `body` runs, if there may be one.
template <typename Body>
void instantiated(const Memory& memory, Body&& body) {
  cudaGraphExec_t made = nullptr;
  if (isDone("its instantiation", cudaGraphInstantiate(&made, memory.of, 0))) body(made);
  if (made != nullptr) CHECK(cudaGraphExecDestroy(made));
}

void updateBetween(const char* letters, bool frees) {
  Memory own(letters, frees, 1), other(letters, frees, 2), launched(letters, frees, 3), larger(letters, frees, 4, 1 << 20);
  CHECK(cudaGraphInstantiate(&executable, own.of, 0));
  auto by = [&](const char* what, const Memory& with) {
    updateBy((std::string(letters) + (frees ? ", freed, " : ", not freed, ") + what).c_str(), executable, with.of);
  };
  by("its own graph", own);
  by("another", other);
  instantiated(other, [](cudaGraphExec_t) {});
  by("one that was instantiated", other);
  if (!frees) return;
  instantiated(launched, runs);
  by("one that was launched", launched);
  instantiated(launched, [&](cudaGraphExec_t made) { runs(made), by("one that is instantiated", launched); });
  runs(executable);
  by("after a launch", other);
  by("one with more memory", larger);
}

}  // namespace

SECTION(updates) {
  setUp();
  for (bool frees : {true, false})
    for (const char* letters : {"k", "f", "o", "i", "fk", "kf", "ko"}) updateBetween(letters, frees);
}

SECTION(fills) {
  setUp();
  Memory own("f", true), other("f", true);
  CHECK(cudaGraphInstantiate(&executable, own.of, 0));
  auto set = [&](const char* what, int* place) {
    cudaMemsetParams fill = fillOf(place, 5, 4, 1);
    tried(what, cudaGraphExecMemsetNodeSetParams(executable, own.first, &fill));
  };
  set("to another's memory", other.place);
  set("to its own", own.place);
  set("to memory of no node", words);
  set("to its own again", own.place);
  cudaMemsetParams fill = fillOf(other.place, 5, 4, 1);
  tried("in the graph, to another's", cudaGraphMemsetNodeSetParams(own.first, &fill));
  tried("a new node, of another's", cudaGraphAddMemsetNode(&node, own.of, nullptr, 0, &fill));
}

SECTION(copies) {
  setUp();
  Memory own("o", true), other("o", true);
  CHECK(cudaGraphInstantiate(&executable, own.of, 0));
  auto set = [&](const char* what, int* place) {
    tried(what, cudaGraphExecMemcpyNodeSetParams1D(executable, own.first, words, place, 4, cudaMemcpyDeviceToDevice));
  };
  set("from another's memory", other.place);
  set("from its own", own.place);
  set("from memory of no node", words + 4);
  set("from its own again", own.place);
  tried("in the graph, from another's", cudaGraphMemcpyNodeSetParams1D(own.first, words, other.place, 4, cudaMemcpyDeviceToDevice));
}

// A graph without memory nodes.
SECTION(fillsOfMemoryThatStays) {
  setUp();
  Memory other("f", false);
  cudaMemsetParams fill = fillOf(words, 5, 4, 1);
  CHECK(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  auto set = [&](const char* what, int* place) {
    fill.dst = place;
    tried(what, cudaGraphExecMemsetNodeSetParams(executable, node, &fill));
  };
  set("never instantiated", other.place);
  instantiated(other, [&](cudaGraphExec_t made) {
    set("instantiated", other.place);
    runs(made);
    set("launched", other.place);
    CHECK(cudaFree(other.place));
    set("freed", other.place);
  });
  int* ordered;
  CHECK(cudaMallocAsync(&ordered, 64, nullptr));
  set("of a pool", ordered);
}
