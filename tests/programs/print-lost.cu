// A program that ends without waiting for its kernels loses their output; one that resets the device does not.
#include <cstring>
#include <string>
#include <sys/wait.h>

#include "captured-output.h"

__global__ void say() { printf("kernel\n"); }

// The output of this program run as another process with the argument `how`.
std::string outputOf(const char* how) {
  CapturedOutput output(CapturedOutput::Into::pipe);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "print-lost", how, nullptr);
    _exit(3);
  }
  int status = 1;
  waitpid(child, &status, 0);
  const std::string text = output.finish();
  return status == 0 ? text : "(it failed)";
}

int main(int argc, char** argv) {
  if (argc > 1) {
    std::printf("host\n");
    say<<<1, 1>>>();
    CHECK(cudaGetLastError());
    if (std::strcmp(argv[1], "reset") == 0) CHECK(cudaDeviceReset());
    return 0;
  }
  const bool ok = sameText("without a wait", outputOf("leave"), "host\n") &
                  sameText("with a reset", outputOf("reset"), "host\nkernel\n");
  return verdict("print-lost", ok);
}
