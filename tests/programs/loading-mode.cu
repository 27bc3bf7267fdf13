// cuModuleGetLoadingMode() returns the mode that CUDA_MODULE_LOADING sets. Each value is tested in a new process.
#include <sys/wait.h>

#include "driver-entry.h"

namespace {

// Whether this program, run with the variable set to `value` (null: unset), gets the expected mode.
bool isTold(const char* value, CUmoduleLoadingMode expected) {
  const pid_t child = fork();
  if (child == 0) {
    value == nullptr ? unsetenv("CUDA_MODULE_LOADING") : setenv("CUDA_MODULE_LOADING", value, 1);
    execl("/proc/self/exe", "loading-mode", std::to_string(expected).c_str(), nullptr);
    _exit(3);
  }
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    CUmoduleLoadingMode mode{};
    CHECK(cudaFree(nullptr));
    CALL(cuModuleGetLoadingMode, &mode);
    return EXPECT(mode == std::atoi(argv[1])) ? 0 : 1;
  }
  bool ok = EXPECT(isTold(nullptr, CU_MODULE_LAZY_LOADING)) & EXPECT(isTold("LAZY", CU_MODULE_LAZY_LOADING));
  return verdict("loading-mode", ok & EXPECT(isTold("EAGER", CU_MODULE_EAGER_LOADING)));
}
