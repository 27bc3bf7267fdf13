// Memory of an allocation node in fills and copies: if the same graph frees it, only that graph may use it; other memory any graph may use.
#include "../memory-node.h"
#include "graph-updates.h"

namespace {

// An allocation, then a node for each letter (k: a kernel that stores to it, f: a fill, i and o: a copy into it and out of it; q and p: a
// fill and a copy of other memory), and optionally a free.
struct Memory {
  Memory(const char* letters, bool frees, int value = 1, size_t bytes = 16) : of(newGraph()) {
    cudaMemAllocNodeParams parameters = memoryNode(bytes);
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
      if (*letter == 'p') CHECK(cudaGraphAddMemcpyNode1D(&made, of, &last, 1, words, words + 4, 4, cudaMemcpyDeviceToDevice)), named("the copy", made);
      fill.dst = words;
      if (*letter == 'q') CHECK(cudaGraphAddMemsetNode(&made, of, &last, 1, &fill)), named("the fill", made);
      if (first == nullptr) first = made;
      last = made;
    }
    cudaGraphNode_t freed;
    if (frees) CHECK(cudaGraphAddMemFreeNode(&freed, of, &last, 1, place));
  }
  cudaGraph_t of;
  int* place = nullptr;
  cudaGraphNode_t first = nullptr;  // the first node behind the allocation
};

// Runs `body` with an executable graph, if one can be instantiated.
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

// Each end of the copy either stays in memory of allocation nodes, or elsewhere.
static void copyEnds(const char* letter, bool frees) {
  Memory own(letter, frees), other(letter, frees), plain("p", frees);
  CHECK(cudaGraphInstantiate(&executable, own.of, 0));
  const std::string prefix = std::string(letter) + (frees ? ", freed, " : ", not freed, ");
  auto set = [&](const char* what, int* to, int* from) {
    tried((prefix + what).c_str(), cudaGraphExecMemcpyNodeSetParams1D(executable, own.first, to, from, 4, cudaMemcpyDeviceToDevice));
  };
  set("out of it", words, own.place);
  set("into it", own.place, words);
  set("other memory", words, words + 4);
  set("within it", own.place, own.place + 2);
  set("out of another's", words, other.place);
  set("into another's", other.place, words);
  updateBy((prefix + "to other memory").c_str(), executable, plain.of);
  updateBy((prefix + "to another's").c_str(), executable, other.of);
  set("then out of it", words, own.place);
  set("then out of another's", words, other.place);
}
SECTION(endsOfCopies) {
  setUp();
  for (bool frees : {true, false})
    for (const char* letter : {"o", "i", "p"}) copyEnds(letter, frees);
}

// Fills may use memory of the graph from which the executable graph was updated.
SECTION(fillsAfterUpdates) {
  setUp();
  for (bool frees : {true, false}) {
    Memory own("q", frees), other("f", frees), plain("q", frees);
    CHECK(cudaGraphInstantiate(&executable, own.of, 0));
    updateBy("to other memory", executable, plain.of);
    updateBy("to another's", executable, other.of);
    auto set = [&](const char* what, int* place) {
      cudaMemsetParams fill = fillOf(place, 5, 4, 1);
      tried(what, cudaGraphExecMemsetNodeSetParams(executable, own.first, &fill));
    };
    set("to what it has now", plain.place);
    set("to what it had", own.place);
  }
}

SECTION(nodesBesideTheFree) {
  setUp();
  Memory own("", false);
  cudaGraph_t other = newGraph();
  cudaMemsetParams fill = fillOf(own.place, 7, 4, 1);
  tried("another graph's fill before", cudaGraphAddMemsetNode(&node, other, nullptr, 0, &fill));
  cudaGraphNode_t allocation;
  size_t many = 1;
  CHECK(cudaGraphGetNodes(own.of, &allocation, &many));
  CHECK(cudaGraphAddMemFreeNode(&node, own.of, &allocation, 1, own.place));
  tried("another graph's fill behind", cudaGraphAddMemsetNode(&node, other, nullptr, 0, &fill));
  tried("another graph's copy", cudaGraphAddMemcpyNode1D(&node, other, nullptr, 0, words, own.place, 4, cudaMemcpyDeviceToDevice));
  tried("the other's instantiation", cudaGraphInstantiate(&executable, other, 0));
  tried("its own fill", cudaGraphAddMemsetNode(&node, own.of, &allocation, 1, &fill));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  tried("a captured fill", cudaMemsetAsync(own.place, 0, 4, stream));
  tried("a captured copy", cudaMemcpyAsync(words, own.place, 4, cudaMemcpyDeviceToDevice, stream));
  tried("the end", cudaStreamEndCapture(stream, &graph));
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
