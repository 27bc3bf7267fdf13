// Executable graphs with kernels of a module that has been unloaded since, as a library that was closed leaves them: one that was set to
// another module's kernel goes on, and so does one whose kernel is disabled, until it is set and enabled too; one with neither is only
// destroyed. Also after a suspend.
#include "driver-entry.h"

namespace {

// A kernel that stores a number, and no variables.
std::string imageOf(int number) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n"
         ".visible .entry store(.param .u64 out) {\n"
         "  .reg .u64 %a;\n  .reg .u32 %v;\n"
         "  ld.param.u64 %a, [out];\n  cvta.to.global.u64 %a, %a;\n  mov.u32 %v, " +
         std::to_string(number) + ";\n  st.global.u32 [%a], %v;\n  ret;\n}\n";
}

struct Module {
  explicit Module(int number) {
    CALL(cuModuleLoadData, &handle, imageOf(number).c_str());
    CALL(cuModuleGetFunction, &store, handle, "store");
  }
  CUmodule handle;
  CUfunction store;
};

struct Graph {
  explicit Graph(const Module& module) {
    const CUDA_KERNEL_NODE_PARAMS kernel = kernelOf(module);
    CALL(cuGraphCreate, &graph, 0);
    CALL(cuGraphAddKernelNode, &node, graph, nullptr, 0, &kernel);
    CALL(cuGraphInstantiateWithFlags, &exec, graph, 0);
  }
  ~Graph() {
    CALL(cuGraphExecDestroy, exec);
    CALL(cuGraphDestroy, graph);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void set(const Module& module) {
    const CUDA_KERNEL_NODE_PARAMS kernel = kernelOf(module);
    CALL(cuGraphExecKernelNodeSetParams, exec, node, &kernel);
  }
  void enable(bool isEnabled) { CALL(cuGraphNodeSetEnabled, exec, node, isEnabled); }
  bool stores(int number) {
    out.upload({0});
    CALL(cuGraphLaunch, exec, nullptr);
    CHECK(cudaDeviceSynchronize());
    return same("of a graph", out.download(), {number});
  }

 private:
  CUDA_KERNEL_NODE_PARAMS kernelOf(const Module& module) {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = module.store;
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = arguments;
    return kernel;
  }

  DeviceArray<int> out{1};
  int* address = out;
  void* arguments[1] = {&address};
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
};

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  Module ended(7), stays(9);
  Graph changed(ended), disabled(ended), both(ended);
  bool ok = true;
  {
    Graph left(ended);
    ok &= left.stores(7) & changed.stores(7) & disabled.stores(7);
    changed.set(stays);
    both.set(stays);
    disabled.enable(false);
    both.enable(false);
    CALL(cuModuleUnload, ended.handle);
    ok &= changed.stores(9) & disabled.stores(0) & both.stores(0);
    pausePoint();
    ok &= changed.stores(9) & disabled.stores(0) & both.stores(0);
  }
  Graph another(stays);
  disabled.enable(true);
  disabled.set(stays);
  both.enable(true);
  ok &= another.stores(9) & changed.stores(9) & disabled.stores(9) & both.stores(9);
  return verdict("unloaded-graphs", ok);
}
