// GPU core dump settings from the environment are kept; a program that enables dumps by a call still gets the errors of its kernels. The
// test sets its environment (CMakeLists.txt).
#include <unistd.h>

#include "driver-entry.h"

__global__ void store(int* to) { *to = 1; }

int main() {
  CHECK(cudaFree(nullptr));
  char name[1024] = "", other[] = "/tmp/other";
  size_t size = sizeof name;
  CALL(cuCoredumpGetAttribute, CU_COREDUMP_FILE, name, &size);
  if (name != "/tmp/dump." + std::to_string(getpid())) return fprintf(stderr, "the file is '%s'\n", name), 1;
  size = sizeof other;
  CALL(cuCoredumpSetAttribute, CU_COREDUMP_FILE, other, &size);
  size = sizeof name;
  CALL(cuCoredumpGetAttribute, CU_COREDUMP_FILE, name, &size);
  if (strcmp(name, other) == 0) return fprintf(stderr, "a call has changed what the environment says\n"), 1;
  pausePoint();
  bool is = false;
  size = sizeof is;
  CALL(cuCoredumpSetAttribute, CU_COREDUMP_TRIGGER_HOST, &is, &size);
  is = true;
  CALL(cuCoredumpSetAttribute, CU_COREDUMP_ENABLE_ON_EXCEPTION, &is, &size);
  store<<<1, 1>>>(reinterpret_cast<int*>(64));
  const cudaError_t fault = cudaDeviceSynchronize();
  if (fault != cudaErrorIllegalAddress) return fprintf(stderr, "the fault is %s\n", cudaGetErrorName(fault)), 1;
  return 0;
}
