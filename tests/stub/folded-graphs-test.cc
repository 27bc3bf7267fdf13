#include "stub/gpu/folded-graphs.h"

#include <doctest/doctest.h>

#include <cstring>
#include <list>

#include "vgpu/api/wire-value.h"

using namespace vgpu::stub;
namespace api = vgpu::api;

namespace {

// A driver that represents graphs by numbers and counts calls.
struct Fake {
  unsigned made = 0, set = 0, launched = 0, alive = 0;
  CUresult instantiate = CUDA_SUCCESS, update = CUDA_SUCCESS, launch = CUDA_SUCCESS;
  std::vector<uint64_t> launches;  // executable graphs, in order of their launches
  uint64_t next = 100;
} fake;

template <typename Handle>
CUresult give(Handle* handle) {
  *handle = vgpu::fromWire<Handle>(++fake.next);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI setKernel(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*) {
  ++fake.set;
  return fake.update;
}
CUresult CUDAAPI instantiate(CUgraphExec* executable, CUgraph, unsigned long long) {
  if (fake.instantiate != CUDA_SUCCESS) return fake.instantiate;
  ++fake.made;
  ++fake.alive;
  return give(executable);
}
CUresult CUDAAPI launch(CUgraphExec executable, CUstream) {
  if (fake.launch != CUDA_SUCCESS) return fake.launch;
  ++fake.launched;
  fake.launches.push_back(vgpu::toWire(executable));
  return CUDA_SUCCESS;
}
CUresult CUDAAPI destroyExecutable(CUgraphExec) {
  --fake.alive;
  return CUDA_SUCCESS;
}

Driver graphDriver() {
  Driver driver;
  driver.cuGraphCreate = [](CUgraph* graph, unsigned) { return give(graph); };
  driver.cuGraphDestroy = [](CUgraph) { return CUDA_SUCCESS; };
  driver.cuGraphAddKernelNode_v2 = [](CUgraphNode* node, CUgraph, const CUgraphNode*, size_t, const CUDA_KERNEL_NODE_PARAMS*) {
    return give(node);
  };
  driver.cuGraphExecKernelNodeSetParams_v2 = setKernel;
  driver.cuGraphInstantiateWithFlags = instantiate;
  driver.cuGraphLaunch = launch;
  driver.cuGraphExecDestroy = destroyExecutable;
  return driver;
}

struct Made {
  Made() { fake = {}; }
  const Driver driver = graphDriver();
  PrimaryContext context{driver, 0};  // no context is made
  FoldedGraphs graphs{driver, context};
  std::list<std::vector<capnp::word>> contents;

  // Launches of kernels of one function with these parameters.
  std::vector<FoldedWork> run(const std::vector<uint64_t>& parameters, uint64_t function = 7, uint64_t module = 70) {
    std::vector<FoldedWork> made;
    for (uint64_t parameter : parameters) {
      auto& words = contents.emplace_back(2);
      auto bytes = kj::arrayPtr(words.data(), words.size()).asBytes();
      std::memcpy(bytes.begin(), &function, sizeof function);
      std::memcpy(bytes.begin() + sizeof function, &parameter, sizeof parameter);
      KernelWork kernel{};
      kernel.function = function;
      kernel.module = module;
      made.push_back({kernel, kernelShape, kj::arrayPtr(words.data(), words.size()), parameter, function});
    }
    return made;
  }
  bool launch(const std::vector<FoldedWork>& work, uint64_t stream = 1, FoldedRunHints hints = {}) {
    return graphs.launch(stream, vgpu::fromWire<CUstream>(stream + 10), work, hints);
  }
};

}  // namespace

TEST_CASE("repeated work is launched by two graphs in turn, and their parameters are not set again") {
  Made made;
  for (int i = 0; i < 6; ++i) CHECK(made.launch(made.run({1, 2, 3})));
  CHECK(fake.made == 2);
  CHECK(fake.set == 0);
  CHECK(fake.launches[4] == fake.launches[2]);
  CHECK(fake.launches[5] == fake.launches[3]);
  CHECK(fake.launches[4] != fake.launches[5]);
}

TEST_CASE("in a run of the same shape only changed parameters are set") {
  Made made;
  made.launch(made.run({1, 2, 3}));
  made.launch(made.run({1, 2, 3}));
  CHECK(made.launch(made.run({1, 5, 3})));
  CHECK(fake.made == 2);
  CHECK(fake.set == 1);
  CHECK(made.launch(made.run({9, 8, 7}, 6)));
  CHECK(fake.set == 4);
}

TEST_CASE("each part of a long period has its own graph") {
  Made made;
  for (int i = 0; i < 5; ++i)
    for (uint64_t part = 0; part < 3; ++part) CHECK(made.launch(made.run({part, part}), 1, {.copies = 4}));
  CHECK(fake.made == 3);
  CHECK(fake.set == 0);
}

TEST_CASE("a stream never shares a graph with another") {
  Made made;
  made.launch(made.run({1, 2}), 1);
  made.launch(made.run({1, 2}), 2);
  CHECK(fake.made == 2);
}

TEST_CASE("for a shape that may not recur a graph is made at its second occurrence") {
  Made made;
  CHECK(!made.launch(made.run({1, 2}), 1, {.isNew = true}));
  CHECK(fake.made == 0);
  CHECK(made.launch(made.run({3, 4}), 1, {.isNew = true}));
}

TEST_CASE("no graph is made for a stream that may end soon, and existing ones are used") {
  Made made;
  CHECK(!made.launch(made.run({1, 2}), 1, {.isShort = true}));
  CHECK(made.launch(made.run({1, 2}), 1));
  CHECK(made.launch(made.run({3, 4}), 1, {.isShort = true}));
  CHECK(fake.made == 1);
}

TEST_CASE("a graph is destroyed before a module, a function or a stream that it uses, or used when it was made") {
  for (auto kind : {api::Kind::MODULE, api::Kind::FUNCTION, api::Kind::STREAM}) {
    Made made;
    made.launch(made.run({1}));
    made.launch(made.run({1}));
    made.launch(made.run({1}, 8, 80));
    made.graphs.forget(kind, 99);
    CHECK(fake.alive == 2);
    made.graphs.forget(kind, kind == api::Kind::MODULE ? 70 : kind == api::Kind::FUNCTION ? 7 : 1);
    CHECK(fake.alive == 0);
    CHECK(made.launch(made.run({1}, 8, 80)));
    CHECK(fake.alive == 1);
  }
}

TEST_CASE("a run whose update the driver refuses is not launched, and its graph is not used again") {
  Made made;
  made.launch(made.run({1}));
  made.launch(made.run({1}));
  fake.update = CUDA_ERROR_NOT_SUPPORTED;
  CHECK(!made.launch(made.run({2})));
  CHECK(fake.launched == 2);
  CHECK(fake.alive == 1);
  fake.update = CUDA_SUCCESS;
  CHECK(made.launch(made.run({2})));
}

TEST_CASE("a shape whose updates are always refused is no longer folded") {
  Made made;
  fake.update = CUDA_ERROR_NOT_SUPPORTED;
  for (uint64_t i = 0; i < 100; ++i) made.launch(made.run({i}));
  CHECK(fake.made < 20);
}

TEST_CASE("if there is no memory for a graph, all are dropped, and none is made for a while") {
  Made made;
  made.launch(made.run({1}));
  fake.instantiate = CUDA_ERROR_OUT_OF_MEMORY;
  CHECK(!made.launch(made.run({1, 2})));
  CHECK(fake.alive == 0);
  fake.instantiate = CUDA_SUCCESS;
  CHECK(!made.launch(made.run({1})));
  for (int i = 0; i < 2000; ++i) made.launch(made.run({1}));
  CHECK(fake.alive == 2);
}

TEST_CASE("the graphs of many shapes take bounded memory") {
  Made made;
  std::vector<uint64_t> parameters;
  for (uint64_t length = 1; length <= 64; ++length) {
    parameters.push_back(length);
    for (uint64_t stream = 1; stream <= 2; ++stream)
      for (int i = 0; i < 4; ++i) made.launch(made.run(parameters), stream, {.copies = 4});
  }
  CHECK(made.launch(made.run(parameters)));
  CHECK(fake.alive < fake.made);
  CHECK(fake.alive <= 8192);
  CHECK(made.graphs.dropAll());
  CHECK(fake.alive == 0);
  CHECK(!made.graphs.dropAll());
}
