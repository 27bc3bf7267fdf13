// A worker's state of the executable graphs of one GPU: the driver's graph with its nodes, numbered by the program, and what has been set
// of each node since the graph was instantiated.
//
// Used by the thread of that GPU, and while no calls are executed. A recipe makes the graph as it was instantiated. Later settings are
// posted, so they are not part of the recipe (docs/objects.md, Superseding) but state: the latest frame of each method for each node.
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

// What one of the session's own nodes does with a completion word: writes the sequence number of the launch, and may wait for the program's
// reply.
struct OwnWords {
  uint32_t line = 0;
  bool waits = false;
};

struct KnownGraphNode {
  CUgraphNode node = nullptr;
  unsigned device = 0;  // whose ring has the node's frames
  std::optional<OwnWords> own;
  uint64_t event = 0;  // of a record node: the event's virtual handle
  std::vector<CUgraph> bodies;  // of a conditional node
  using Settings = std::map<api::Method, std::vector<capnp::word>>;
  Settings set;  // the latest frame of each method
  Settings uploaded;  // `set` at the graph's last upload, if kernels launch it
  std::optional<Settings::value_type> late;  // of a fill's or copy's placeholder: the frame that says what the node is to do (setLate)
};

struct KnownGraph {
  CUgraph graph = nullptr;
  CUgraph body = nullptr;            // the graph to which nodes are added: `graph` or a body of a conditional node
  CUgraphExec executable = nullptr;  // nullptr: not instantiated yet, or that failed
  CUresult failure = CUDA_SUCCESS;   // error of a frame that has added a node
  std::vector<KnownGraphNode> nodes;
  std::vector<CUgraphNode> beforeNext;  // dependencies of the node that the next frame adds, if that frame does not name them (addAsSet)
  std::vector<uint32_t> own, records, placeholders;  // nodes with our words; that record events; whose kernel or memory has ended
  uint64_t function = 0;      // of its first kernel, for messages

  // For a graph that kernels launch, or with nodes that they change.
  uint64_t address = 0;  // the handle that kernels use; for a holder, its node's handle
  bool isUploaded = false, isSetSince = false;
  std::vector<uint64_t> holders;    // virtual handles of the graphs from which its nodes were taken
  std::optional<KeptKernelNode> held;  // for a holder: its node, which may be in another graph now
};

using KnownGraphs = std::unordered_map<uint64_t, KnownGraph>;  // by virtual handle

}  // namespace vgpu::stub
