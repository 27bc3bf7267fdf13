// What a worker keeps of the executable graphs of one GPU: the driver's graph with its nodes, of which each has the number that the
// program gave it, and what has been set of a node since the graph was instantiated.
//
// Used by the thread of that GPU, and while no calls are executed. A recipe makes the graph as it was instantiated; what has been set
// since is posted, so it is not part of it (docs/objects.md, Superseding) but state, the latest frame of each method for a node.
#pragma once

#include <capnp/common.h>
#include <cuda.h>

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cuda-methods.h"
#include "stub/worker/device-handles.h"

namespace vgpu::stub {

// What a node of the session's own does with a completion word: writes the sequence number of the launch, and waits for the reply.
struct OwnWords {
  uint32_t line = 0;
  bool waits = false;
};

struct KnownGraphNode {
  CUgraphNode node = nullptr;
  unsigned device = 0;  // that executes its frames
  std::optional<OwnWords> own;
  uint64_t event = 0;  // virtual, of a record
  std::vector<CUgraph> bodies;  // of a conditional node
  using Settings = std::map<api::Method, std::vector<capnp::word>>;
  Settings set;  // the latest frame of each method
  Settings uploaded;  // the same when the graph was last uploaded, if kernels launch it
  std::optional<Settings::value_type> late;  // of a placeholder for a fill or a copy: the frame that says what it is to do (setLate)
};

struct KnownGraph {
  CUgraph graph = nullptr;
  CUgraph body = nullptr;            // to which nodes are added, the graph itself or one of a conditional node
  CUgraphExec executable = nullptr;  // nullptr: not instantiated yet, or it could not be
  CUresult failure = CUDA_SUCCESS;   // of a frame that has added a node
  std::vector<KnownGraphNode> nodes;
  std::vector<CUgraphNode> beforeNext;  // of a node that is added by a frame which says nothing of that (addAsSet)
  std::vector<uint32_t> own, records, placeholders;  // those with words of ours, that record events, and whose kernel or memory is gone
  uint64_t function = 0;      // of its first kernel, for messages

  // Of a graph that kernels launch, or that has nodes which they change.
  uint64_t address = 0;  // by which kernels know it; of a holder, its node
  bool isUploaded = false, isSetSince = false;
  std::vector<uint64_t> holders;    // virtual handles of graphs that its nodes have come from
  std::optional<KeptKernelNode> held;  // of a holder: its node, which may be in another graph
};

using KnownGraphs = std::unordered_map<uint64_t, KnownGraph>;  // by virtual handle

}  // namespace vgpu::stub
