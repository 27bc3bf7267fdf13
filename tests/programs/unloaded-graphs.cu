// Executable graphs with kernels of a module that has since been unloaded, as by a closed library: one that was set to another module's
// kernel still works, and so does one whose kernel is disabled, which cannot be enabled again; other ones can only be destroyed. Also after
// a suspend.
#include "number-graph.h"

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
    ok &= EXPECT(disabled.enable(false) == CUDA_SUCCESS) & EXPECT(both.enable(false) == CUDA_SUCCESS);
    CALL(cuModuleUnload, ended.handle);
    ok &= changed.stores(9) & disabled.stores(0) & both.stores(0);
    pausePoint();
    ok &= changed.stores(9) & disabled.stores(0) & both.stores(0);
  }
  Graph another(stays);
  ok &= EXPECT(disabled.enable(true) == CUDA_ERROR_UNKNOWN) & EXPECT(both.enable(true) == CUDA_SUCCESS);
  ok &= another.stores(9) & changed.stores(9) & both.stores(9);
  return verdict("unloaded-graphs", ok);
}
