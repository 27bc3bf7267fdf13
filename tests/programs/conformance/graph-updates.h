// Graphs and executable graphs that update each other, shared by the programs about updates.
#pragma once

#include <functional>
#include <map>

#include "../kernel-node.h"
#include "graph-nodes.h"

static __global__ void store(int* to, int value) { *to = value; }

// Names of nodes for messages.
inline std::map<cudaGraphNode_t, std::string> names;
inline std::string nameOf(cudaGraphNode_t node) {
  if (node == nullptr) return "none";
  auto found = names.find(node);
  return found == names.end() ? "another" : found->second;
}

inline cudaGraph_t newGraph() {
  cudaGraph_t made;
  CHECK(cudaGraphCreate(&made, 0));
  return made;
}
inline cudaGraphNode_t named(const char* name, cudaGraphNode_t made) { return names[made] = name, made; }

inline cudaError_t updateBy(const char* what, cudaGraphExec_t of, cudaGraph_t with) {
  cudaGraphExecUpdateResultInfo info{};
  cudaError_t result = cudaGraphExecUpdate(of, with, &info);
  std::printf("%s: %s: %s, %d, node %s, from %s\n", currentSection, what, cudaGetErrorName(result), info.result,
              nameOf(info.errorNode).c_str(), nameOf(info.errorFromNode).c_str());
  (void)cudaGetLastError();
  return result;
}
inline cudaError_t tried(const char* what, cudaError_t result) {
  (void)cudaGetLastError();
  return say(what, result);
}
inline bool isDone(const char* what, cudaError_t result) { return result == cudaSuccess || tried(what, result) == cudaSuccess; }
#define TRY(call) tried(#call, call)

inline void clear() {
  CHECK(cudaMemset(words, 0, wordCount * sizeof(int)));
  CHECK(cudaMemset(others, 0, wordCount * sizeof(int)));
  CHECK(cudaDeviceSynchronize());
}
// Launches it, and prints only errors.
inline void runs(cudaGraphExec_t what) {
  isDone("a launch", cudaGraphLaunch(what, stream));
  isDone("its end", cudaStreamSynchronize(stream));
}
inline void showWords(const char* what, cudaGraphExec_t of, std::initializer_list<int> places) {
  clear();
  runs(of);
  sayWords(what, words, places);
}

// Names the nodes of a child node's own copy.
inline void nameInner(cudaGraphNode_t child) {
  cudaGraph_t own = nullptr;
  cudaGraphNode_t inner[8];
  size_t many = 8;
  CHECK(cudaGraphChildGraphNodeGetGraph(child, &own));
  CHECK(cudaGraphGetNodes(own, inner, &many));
  for (size_t i = 0; i < many; ++i) {
    names[inner[i]] = names[child] + "'s " + std::to_string(i);
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(inner[i], &type));
    if (type == cudaGraphNodeTypeGraph) nameInner(inner[i]);
  }
}
