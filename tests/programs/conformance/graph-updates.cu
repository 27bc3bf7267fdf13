// Updates of executable graphs from another graph: how nodes are paired, and the errors for different shapes; child graphs, conditional
// nodes and their bodies. Launches show the effect.
#include "graph-updates.h"

namespace {

// ---- Graphs by shape: "abC" are kernels a and b and a fill C in creation order, "ab cb" the edges from a to b and from c to b. Each node
// writes `base` plus its own position to its own word.
struct Shape {
  Shape(const char* nodes, const char* edges, int base) : graph(newGraph()) {
    for (; *nodes != 0; ++nodes) {
      const int place = (*nodes | 32) - 'a', value = base + place;
      cudaGraphNode_t made = nullptr;
      cudaMemsetParams fill = fillOf(words + place, static_cast<unsigned>(value), 4, 1);
      if (*nodes >= 'a') made = addKernel(graph, {}, store, words + place, value);
      else CHECK(cudaGraphAddMemsetNode(&made, graph, nullptr, 0, &fill));
      names[made] = *nodes | 32;
      of[place] = made;
      letters += *nodes | 32;
    }
    for (; *edges != 0; edges += edges[2] == 0 ? 2 : 3) join(edges[0], edges[1]);
  }
  void join(char from, char to) { CHECK(cudaGraphAddDependencies(graph, &of[(from | 32) - 'a'], &of[(to | 32) - 'a'], nullptr, 1)); }
  cudaGraph_t graph;
  cudaGraphNode_t of[8] = {};
  std::string letters;
};

// Launches it, and shows which node each of the first graph's nodes was paired with: the word that is missing when that node is disabled.
void showShape(cudaGraphExec_t of, const Shape& first) {
  showWords("all", of, {0, 1, 2, 3});
  std::string pairs;
  for (char letter : first.letters) {
    CHECK(cudaGraphNodeSetEnabled(of, first.of[letter - 'a'], 0));
    clear();
    runs(of);
    pairs += std::string(" ") + letter + ' ';
    for (char other : first.letters)
      if (wordAt(words + (other - 'a')) == 0) pairs += other;
    CHECK(cudaGraphNodeSetEnabled(of, first.of[letter - 'a'], 1));
  }
  std::printf("%s: taken for each other:%s\n", currentSection, pairs.c_str());
}
void updateShape(const char* nodes, const char* edges, std::initializer_list<std::pair<const char*, const char*>> others) {
  setUp();
  for (auto& [otherNodes, otherEdges] : others) {
    Shape first(nodes, edges, 10), second(otherNodes, otherEdges, 20);
    cudaGraphExec_t made;
    CHECK(cudaGraphInstantiate(&made, first.graph, 0));
    const bool isUpdated = updateBy((std::string(otherNodes) + " " + otherEdges).c_str(), made, second.graph) == cudaSuccess;
    isUpdated ? showShape(made, first) : showWords("all", made, {0, 1, 2, 3});
    CHECK(cudaGraphExecDestroy(made));
    CHECK(cudaGraphDestroy(first.graph));
    CHECK(cudaGraphDestroy(second.graph));
  }
}

}  // namespace

SECTION(diamonds) {
  updateShape("abcd", "ab ac bd cd",
              {{"abcd", "ab ac bd cd"},
               {"dcba", "ab ac bd cd"},
               {"abcd", "ab ac cd bd"},
               {"acbd", "ab ac bd cd"},
               {"abcd", "cd bd ac ab"},
               {"abcd", "ab ac bd"},
               {"abcd", "ab ac bd cd ad"},
               {"abcd", "ab ac ad bd cd"},
               {"abcd", "ab bc cd"},
               {"abcd", "ab ac cb cd"},
               {"abcd", ""},
               {"abcde", "ab ac bd cd de"},
               {"abc", "ab ac"},
               {"aBcd", "ab ac bd cd"},
               {"abcD", "ab ac bd cd"},
               {"Abcd", "ab ac bd cd"},
               {"dcba", "dc db ca ba"}});
}

SECTION(chains) {
  updateShape("abcd", "ab cd", {{"abcd", "cd ab"}, {"cdab", "ab cd"}, {"badc", "ab cd"}, {"acbd", "ab cd"}, {"abcd", "ab bc"}, {"abcd", "ab bc cd"}, {"abcd", "ad cb"}, {"abcd", "ab"}, {"aBcd", "ab cd"}, {"abCd", "ab cd"}});
}

SECTION(lines) {
  updateShape("abcd", "ab bc cd", {{"dcba", "ab bc cd"}, {"abcd", "cd bc ab"}, {"abcd", "ab ac ad"}, {"abcd", "ad bd cd"}, {"bacd", "ba ac cd"}});
}

SECTION(rootsOnly) { updateShape("abc", "", {{"cba", ""}, {"abc", "ab"}, {"aBc", ""}, {"ab", ""}, {"", ""}}); }

SECTION(mixedTypes) {
  updateShape("aBc", "ac bc", {{"Bac", "ac bc"}, {"aBc", "bc ac"}, {"Bac", "bc ac"}, {"abc", "ac bc"}, {"cBa", "ac bc"}});
  updateShape("aBcD", "ab cd", {{"cDaB", "ab cd"}, {"cDaB", "cd ab"}, {"DBca", "ab cd"}, {"Bacd", "ab cd"}});
}

SECTION(twoParents) {
  updateShape("abcd", "ac bc ad bd", {{"abcd", "ac bc bd ad"}, {"abcd", "bc ac bd ad"}, {"bacd", "ac bc ad bd"}, {"abdc", "ac bc ad bd"}});
}

// Nodes removed or added since the instantiation, and an update from the graph itself.
SECTION(changedItself) {
  setUp();
  Shape shape("abc", "ab bc", 10);
  CHECK(cudaGraphInstantiate(&executable, shape.graph, 0));
  updateBy("itself", executable, shape.graph);
  CHECK(cudaGraphRemoveDependencies(shape.graph, &shape.of[0], &shape.of[1], nullptr, 1));
  updateBy("without an edge", executable, shape.graph);
  shape.join('a', 'b');
  updateBy("with it again", executable, shape.graph);
  shape.join('a', 'c');
  updateBy("with another", executable, shape.graph);
  CHECK(cudaGraphDestroyNode(shape.of[0]));
  updateBy("without a node", executable, shape.graph);
  cudaGraphNode_t fresh = named("fresh", addKernel(shape.graph, {}, store, words, 30));
  shape.of[0] = fresh;
  shape.join('a', 'b');
  updateBy("with a new one", executable, shape.graph);
  showWords("all", executable, {0, 1, 2});
  TRY(cudaGraphNodeSetEnabled(executable, fresh, 0));
  cudaGraphExecUpdateResultInfo info{};
  TRY(cudaGraphExecUpdate(executable, nullptr, &info));
  VALUE(info.result);
  TRY(cudaGraphExecUpdate(nullptr, shape.graph, &info));
  VALUE(info.result);
}
SECTION(cycle) {
  alarm(5);
  setUp();
  Shape shape("abc", "ab bc", 10);
  CHECK(cudaGraphInstantiate(&executable, shape.graph, 0));
  shape.join('c', 'b');
  updateBy("with a cycle", executable, shape.graph);
  shape.join('c', 'a');
  updateBy("of all", executable, shape.graph);
}

// Disabled nodes stay disabled; changed parameters are replaced.
SECTION(leftOutBefore) {
  setUp();
  Shape first("aBc", "ab bc", 10), second("aBc", "ab bc", 20);
  CHECK(cudaGraphInstantiate(&executable, first.graph, 0));
  for (char letter : std::string("ab")) CHECK(cudaGraphNodeSetEnabled(executable, first.of[letter - 'a'], 0));
  updateBy("with two left out", executable, second.graph);
  for (char letter : std::string("abc")) {
    unsigned enabled = 9;
    TRY(cudaGraphNodeGetEnabled(executable, first.of[letter - 'a'], &enabled));
    VALUE(enabled);
  }
  showWords("all", executable, {0, 1, 2});
  unsigned enabled = 9;
  TRY(cudaGraphNodeGetEnabled(executable, second.of[0], &enabled));
  TRY(cudaGraphNodeSetEnabled(executable, first.of[0], 1));
  showWords("with the first", executable, {0, 1, 2});
}

SECTION(precedence) {
  updateShape("abcdef", "ab bc de ef", {{"Abcdef", "ab bc de ef ae"}, {"abcDef", "ab bc de ef db"}, {"abcdef", "ab bc de ef db ad"}, {"abcdef", "ab bc de ef ae bd"},
     {"AbcDef", "ab bc de ef"}, {"aBcDef", "ab bc de ef"}, {"AbcdEf", "ab bc de ef"}, {"abCdef", "ab bc de ef ad"}, {"abcdeF", "ab bc de ef da"}});
}

// Removed edges and nodes do not affect the order of the rest.
SECTION(orders) {
  setUp();
  auto test = [](const char* what, Shape& first, Shape& second) {
    cudaGraphExec_t made;
    CHECK(cudaGraphInstantiate(&made, first.graph, 0));
    if (updateBy(what, made, second.graph) == cudaSuccess) showShape(made, first);
  };
  auto unjoin = [](Shape& shape, char from, char to) { CHECK(cudaGraphRemoveDependencies(shape.graph, &shape.of[from - 'a'], &shape.of[to - 'a'], nullptr, 1)); };
  {
    Shape first("abc", "", 10), second("abc", "ab", 20);
    unjoin(second, 'a', 'b');
    test("an edge made and removed", first, second);
    test("the other way round", second, first);
  }
  {
    Shape first("abc", "", 10), second("abcd", "ad", 20);
    CHECK(cudaGraphDestroyNode(second.of[3]));
    second.letters = "abc";
    test("a node behind made and destroyed", first, second);
  }
  {
    Shape first("abc", "ac bc", 10), second("abc", "ac bc", 20);
    unjoin(second, 'a', 'c');
    second.join('a', 'c');
    test("a dependency made again", first, second);
  }
  {
    Shape first("abc", "", 10), second("abcd", "ad bd", 20);
    CHECK(cudaGraphDestroyNode(second.of[3]));
    second.letters = "abc";
    test("a node behind two destroyed", first, second);
  }
  {
    Shape first("abc", "ac bc", 10), second("ab", "", 20);
    cudaGraphNode_t both[] = {second.of[1], second.of[0]};
    int value = 22;
    int* to = words + 2;
    void* arguments[] = {&to, &value};
    cudaKernelNodeParams parameters = kernelNode(store, arguments);
    CHECK(cudaGraphAddKernelNode(&second.of[2], second.graph, both, 2, &parameters));
    names[second.of[2]] = "c";
    second.letters = "abc";
    test("made behind b and a", first, second);
    cudaGraph_t copy;
    CHECK(cudaGraphClone(&copy, second.graph));
    cudaGraphExec_t made;
    CHECK(cudaGraphInstantiate(&made, first.graph, 0));
    if (updateBy("its clone", made, copy) == cudaSuccess) showShape(made, first);
  }
  {
    Shape first("abc", "", 10), second("abc", "ab", 20);
    unjoin(second, 'a', 'b');
    cudaGraph_t copy;
    CHECK(cudaGraphClone(&copy, second.graph));
    cudaGraphExec_t made;
    CHECK(cudaGraphInstantiate(&made, first.graph, 0));
    if (updateBy("a clone of an edge made and removed", made, copy) == cudaSuccess) showShape(made, first);
  }
}

// ---- Child graphs.
namespace {

cudaGraph_t parentOf(cudaGraph_t child, const char* name, cudaGraphNode_t* made = nullptr) {
  cudaGraph_t of = newGraph();
  cudaGraphNode_t one;
  CHECK(cudaGraphAddChildGraphNode(&one, of, nullptr, 0, child));
  nameInner(named(name, one));
  if (made != nullptr) *made = one;
  return of;
}

}  // namespace

SECTION(children) {
  setUp();
  for (auto& [nodes, edges] : std::initializer_list<std::pair<const char*, const char*>>{
           {"abc", "ab bc"}, {"cba", "ab bc"}, {"abc", "ab ac"}, {"abcd", "ab bc cd"}, {"ab", "ab"}, {"aBc", "ab bc"}, {"", ""}}) {
    Shape first("abc", "ab bc", 10), second(nodes, edges, 20);
    cudaGraphNode_t one, two;
    cudaGraph_t now = parentOf(first.graph, "first", &one), wanted = parentOf(second.graph, "second", &two);
    cudaGraphExec_t made;
    CHECK(cudaGraphInstantiate(&made, now, 0));
    updateBy((std::string(nodes) + " " + edges).c_str(), made, wanted);
    showWords("then", made, {0, 1, 2, 3});
    updateBy("back", made, now);
    TRY(cudaGraphExecChildGraphNodeSetParams(made, one, second.graph));
    showWords("then", made, {0, 1, 2, 3});
    CHECK(cudaGraphExecDestroy(made));
  }
}

SECTION(childrenOfChildren) {
  setUp();
  Shape first("ab", "ab", 10), second("ab", "ab", 20), other("ab", "", 30);
  cudaGraphNode_t one;
  cudaGraph_t inner = parentOf(first.graph, "inner"), otherInner = parentOf(second.graph, "other inner"), wrong = parentOf(other.graph, "wrong inner");
  cudaGraph_t now = parentOf(inner, "first", &one);
  CHECK(cudaGraphInstantiate(&executable, now, 0));
  updateBy("another", executable, parentOf(otherInner, "second"));
  showWords("then", executable, {0, 1});
  updateBy("of another shape", executable, parentOf(wrong, "third"));
  TRY(cudaGraphExecChildGraphNodeSetParams(executable, one, wrong));
  TRY(cudaGraphExecChildGraphNodeSetParams(executable, one, inner));
  showWords("then", executable, {0, 1});
  updateBy("its nodes alone", executable, inner);
  updateBy("of kernels", executable, first.graph);
}

SECTION(nodesOfChildren) {
  setUp();
  int counter = 0;
  cudaHostNodeParams function{count, &counter};
  cudaGraph_t child = newGraph(), own;
  auto kernel = addKernel(child, {}, store, words, 1);
  cudaMemsetParams fill = fillOf(words + 1, 2, 4, 1);
  cudaGraphNode_t filled, copied, called, of;
  CHECK(cudaGraphAddMemsetNode(&filled, child, &kernel, 1, &fill));
  CHECK(cudaGraphAddMemcpyNode1D(&copied, child, &filled, 1, words + 2, words + 1, 4, cudaMemcpyDeviceToDevice));
  CHECK(cudaGraphAddHostNode(&called, child, &copied, 1, &function));
  CHECK(cudaGraphAddChildGraphNode(&of, graph, nullptr, 0, child));
  CHECK(cudaGraphChildGraphNodeGetGraph(of, &own));
  cudaGraphNode_t inner[4];
  size_t many = 4;
  CHECK(cudaGraphGetNodes(own, inner, &many));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  showWords("first", executable, {0, 1, 2});
  for (cudaGraphNode_t each : inner) {
    cudaGraphNodeType type{};
    CHECK(cudaGraphNodeGetType(each, &type));
    unsigned enabled = 9;
    VALUE(type);
    TRY(cudaGraphNodeGetEnabled(executable, each, &enabled));
    TRY(cudaGraphNodeSetEnabled(executable, each, 0));
    TRY(cudaGraphNodeGetEnabled(executable, each, &enabled));
    VALUE(enabled);
    showWords("left out", executable, {0, 1, 2});
    TRY(cudaGraphNodeSetEnabled(executable, each, 1));
  }
  TRY(cudaGraphNodeSetEnabled(executable, of, 0));
  TRY(cudaGraphNodeSetEnabled(executable, kernel, 0));
  fill.value = 7;
  TRY(cudaGraphExecMemsetNodeSetParams(executable, filled, &fill));
  for (cudaGraphNode_t each : inner) {
    cudaGraphNodeType type{};
    CHECK(cudaGraphNodeGetType(each, &type));
    if (type == cudaGraphNodeTypeMemset) TRY(cudaGraphExecMemsetNodeSetParams(executable, each, &fill));
    if (type == cudaGraphNodeTypeMemcpy) TRY(cudaGraphExecMemcpyNodeSetParams1D(executable, each, words + 2, words, 4, cudaMemcpyDeviceToDevice));
    function.fn = countTen;
    counter = 0;
    if (type == cudaGraphNodeTypeHost) TRY(cudaGraphExecHostNodeSetParams(executable, each, &function));
  }
  showWords("set", executable, {0, 1, 2});
  VALUE(counter);
}

SECTION(childOrders) {
  setUp();
  for (auto& [nodes, edges] : std::initializer_list<std::pair<const char*, const char*>>{
           {"abcd", "ab ac bd cd"}, {"abcd", "ab ac cd bd"}, {"abcd", "cd bd ac ab"}, {"acbd", "ab ac bd cd"}, {"abcd", "ab bc cd"}, {"abCd", "ab ac bd cd"}}) {
    Shape first("abcd", "ab ac bd cd", 10), second(nodes, edges, 20);
    cudaGraphNode_t one;
    cudaGraph_t now = parentOf(first.graph, "first", &one);
    cudaGraphExec_t made;
    CHECK(cudaGraphInstantiate(&made, now, 0));
    tried((std::string(nodes) + " " + edges).c_str(), cudaGraphExecChildGraphNodeSetParams(made, one, second.graph));
    showWords("then", made, {0, 1, 2, 3});
  }
}

// ---- Conditional nodes and their bodies.
namespace {

struct Conditional {
  Conditional(const char* name, int value, unsigned runs = 1, cudaGraphConditionalNodeType type = cudaGraphCondTypeIf, unsigned size = 1)
      : of(newGraph()) {
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphConditionalHandleCreate(&handle, of, runs, cudaGraphCondAssignDefault));
    cudaGraphNodeParams params{};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = size;
    CHECK(cudaGraphAddNode(&outer, of, nullptr, nullptr, 0, &params));
    names[outer] = name;
    body = params.conditional.phGraph_out[0];
    kernel = addKernel(body, {}, store, words, value);
    cudaMemsetParams fill = fillOf(words + 1, static_cast<unsigned>(value), 4, 1);
    CHECK(cudaGraphAddMemsetNode(&filled, body, &kernel, 1, &fill));
    CHECK(cudaGraphAddMemcpyNode1D(&copied, body, &filled, 1, words + 2, words + 1, 4, cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphAddEmptyNode(&empty, body, &copied, 1));
    cudaGraphNode_t all[] = {kernel, filled, copied, empty};
    for (int i = 0; i < 4; ++i) names[all[i]] = std::string(name) + "'s " + std::to_string(i);
  }
  cudaGraph_t of, body;
  cudaGraphNode_t outer, kernel, filled, copied, empty;
};

}  // namespace

SECTION(conditionalNodes) {
  setUp();
  Conditional first("first", 1), second("second", 2), never("never", 3, 0), loop("loop", 4, 0, cudaGraphCondTypeWhile),
      either("either", 5, 1, cudaGraphCondTypeIf, 2), choice("choice", 6, 0, cudaGraphCondTypeSwitch, 1), more("more", 7), other("other", 8);
  CHECK(cudaGraphInstantiate(&executable, first.of, 0));
  showWords("first", executable, {0, 1, 2});
  updateBy("another body", executable, second.of);
  showWords("then", executable, {0, 1, 2});
  updateBy("another default", executable, never.of);
  showWords("then", executable, {0, 1, 2});
  updateBy("a loop", executable, loop.of);
  updateBy("two bodies", executable, either.of);
  updateBy("a choice", executable, choice.of);
  names[addKernel(more.body, {more.empty}, store, words + 3, 7)] = "more's last";
  updateBy("a longer body", executable, more.of);
  CHECK(cudaGraphDestroyNode(other.empty));
  CHECK(cudaGraphAddEmptyNode(&other.empty, other.body, &other.filled, 1));
  updateBy("a body of another shape", executable, other.of);
  Shape shape("a", "", 10);
  updateBy("none", executable, shape.graph);
  updateBy("itself", executable, first.of);
  showWords("then", executable, {0, 1, 2});
}

SECTION(nodesOfBodies) {
  setUp();
  Conditional first("first", 1);
  CHECK(cudaGraphInstantiate(&executable, first.of, 0));
  for (cudaGraphNode_t each : {first.kernel, first.filled, first.copied, first.empty, first.outer}) {
    std::printf("%s: of %s\n", currentSection, nameOf(each).c_str());
    unsigned enabled = 9;
    TRY(cudaGraphNodeGetEnabled(executable, each, &enabled));
    TRY(cudaGraphNodeSetEnabled(executable, each, 0));
    TRY(cudaGraphNodeGetEnabled(executable, each, &enabled));
    VALUE(enabled);
    showWords("left out", executable, {0, 1, 2});
    TRY(cudaGraphNodeSetEnabled(executable, each, 1));
    showWords("back", executable, {0, 1, 2});
  }
  int value = 5;
  void* arguments[] = {&words, &value};
  cudaKernelNodeParams parameters = kernelNode(store, arguments);
  TRY(cudaGraphExecKernelNodeSetParams(executable, first.kernel, &parameters));
  cudaMemsetParams fill = fillOf(words + 1, 6, 4, 1);
  TRY(cudaGraphExecMemsetNodeSetParams(executable, first.filled, &fill));
  showWords("set", executable, {0, 1, 2});
  fill = fillOf(words + 1, 6, 4, 2);
  TRY(cudaGraphExecMemsetNodeSetParams(executable, first.filled, &fill));
  TRY(cudaGraphExecMemcpyNodeSetParams1D(executable, first.copied, words + 3, words, 4, cudaMemcpyDeviceToDevice));
  showWords("set", executable, {0, 1, 2, 3});
  parameters = kernelNode(multiply, arguments);
  TRY(cudaGraphExecKernelNodeSetParams(executable, first.kernel, &parameters));
  showWords("set", executable, {0, 1, 2, 3});
}

SECTION(bodyOrders) {
  setUp();
  struct Bodies { cudaGraph_t of; cudaGraphNode_t one, two; };
  auto make = [](bool swapped, int base) {
    cudaGraph_t of = newGraph();
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphConditionalHandleCreate(&handle, of, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams params{};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeIf;
    params.conditional.size = 1;
    cudaGraphNode_t outer;
    CHECK(cudaGraphAddNode(&outer, of, nullptr, nullptr, 0, &params));
    cudaGraph_t body = params.conditional.phGraph_out[0];
    cudaGraphNode_t one, two;
    if (!swapped) one = addKernel(body, {}, store, words, base), two = addKernel(body, {one}, store, words + 1, base + 1);
    else {
      two = addKernel(body, {}, store, words + 1, base + 1), one = addKernel(body, {}, store, words, base);
      CHECK(cudaGraphAddDependencies(body, &one, &two, nullptr, 1));
    }
    return Bodies{of, one, two};
  };
  Bodies first = make(false, 10), second = make(true, 20);
  CHECK(cudaGraphInstantiate(&executable, first.of, 0));
  updateBy("a body in another order", executable, second.of);
  showWords("then", executable, {0, 1});
  CHECK(cudaGraphNodeSetEnabled(executable, first.one, 0));
  showWords("without the first", executable, {0, 1});
}

// ---- Nodes of every type in the structure for all types.
SECTION(anyNodes) {
  setUp();
  static int counter;
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  Conditional conditional("conditional", 1);
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.type = cudaGraphCondTypeIf;
  params.conditional.size = 1;
  CHECK(cudaGraphInstantiate(&executable, conditional.of, 0));
  TRY(cudaGraphExecNodeSetParams(executable, conditional.outer, &params));
  TRY(cudaGraphNodeSetParams(conditional.outer, &params));
  params = {};
  TRY(cudaGraphExecNodeSetParams(executable, conditional.outer, &params));
  cudaHostNodeParams function{count, &counter};
  cudaGraphNode_t kernel = addKernel(graph, {}, store, words, 1), called, recorded;
  CHECK(cudaGraphAddHostNode(&called, graph, nullptr, 0, &function));
  CHECK(cudaGraphAddEventRecordNode(&recorded, graph, nullptr, 0, event));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  params = {};
  params.type = cudaGraphNodeTypeHost;
  params.host = {countTen, &counter};
  TRY(cudaGraphExecNodeSetParams(executable, kernel, &params));
  TRY(cudaGraphExecNodeSetParams(executable, recorded, &params));
  TRY(cudaGraphExecNodeSetParams(executable, called, &params));
  runs(executable);
  VALUE(counter);
  params = {};
  params.type = cudaGraphNodeTypeWaitEvent;
  params.eventWait.event = event;
  TRY(cudaGraphExecNodeSetParams(executable, recorded, &params));
}
