// A node of an executable graph whose kernel's module has been unloaded is set to another module's kernel, at which a driver may crash:
// afterwards it has that kernel, is disabled as before, and can be enabled. Also after a suspend.
#include "number-graph.h"

int main() {
  CHECK(cudaFree(nullptr));
  Module ended(7), stays(9);
  Graph set(ended), setLater(ended), disabled(ended), disabledLater(ended);
  bool ok = EXPECT(disabled.enable(false) == CUDA_SUCCESS) & EXPECT(disabledLater.enable(false) == CUDA_SUCCESS);
  CALL(cuModuleUnload, ended.handle);
  set.set(stays);
  disabled.set(stays);
  ok &= set.stores(9) & disabled.stores(0);
  pausePoint();
  setLater.set(stays);
  disabledLater.set(stays);
  ok &= set.stores(9) & setLater.stores(9) & disabled.stores(0) & disabledLater.stores(0);
  ok &= EXPECT(disabled.enable(true) == CUDA_SUCCESS) & EXPECT(disabledLater.enable(true) == CUDA_SUCCESS);
  ok &= disabled.stores(9) & disabledLater.stores(9);
  return verdict("unloaded-nodes", ok);
}
