// Kernels' output appears among the program's own output in the order that CUDA guarantees, if standard output is a file or a pipe: at the
// calls that flush it (CUDA C++ Programming Guide, "Formatted Output"), and not before.
#include <cstring>
#include <string>

#include "captured-output.h"

__global__ void say(int number) { printf("kernel %d\n", number); }

__global__ void sayMuch(int lines) {
  for (int i = 0; i < lines; ++i) printf("line %06d of many, many\n", i);
}

namespace {

std::string expected;
int spoken = 0;

// A line of the program's own, in stdout's buffer.
void host(const char* text) {
  std::printf("host %s\n", text);
  expected += std::string("host ") + text + "\n";
}

void launch(cudaStream_t stream = nullptr) {
  say<<<1, 1, 0, stream>>>(++spoken);
  CHECK(cudaGetLastError());
}

// The latest launch's output must have appeared here.
void due() { expected += "kernel " + std::to_string(spoken) + "\n"; }

void sayLinesOf(int lines) {
  sayMuch<<<1, 1>>>(lines);
  CHECK(cudaDeviceSynchronize());
  char line[64];
  for (int i = 0; i < lines; ++i) {
    std::snprintf(line, sizeof line, "line %06d of many, many\n", i);
    expected += line;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool intoPipe = argc > 1 && std::strcmp(argv[1], "pipe") == 0;
  CapturedOutput output(intoPipe ? CapturedOutput::Into::pipe : CapturedOutput::Into::file);
  cudaStream_t stream, other;
  cudaEvent_t event;
  int word = 1, *onDevice;
  host("begins");
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaMalloc(&onDevice, sizeof word));

  launch();
  host("before a device's synchronization");
  CHECK(cudaDeviceSynchronize());
  due();
  launch(stream);
  host("before a stream's");
  CHECK(cudaStreamSynchronize(stream));
  due();
  launch(other);
  CHECK(cudaEventRecord(event, other));
  host("before an event's");
  CHECK(cudaEventSynchronize(event));
  due();
  launch();
  host("before a copy to the device");
  CHECK(cudaMemcpy(onDevice, &word, sizeof word, cudaMemcpyHostToDevice));
  due();
  launch();
  host("before a copy to the host");
  CHECK(cudaMemcpy(&word, onDevice, sizeof word, cudaMemcpyDeviceToHost));
  due();

  launch(stream);
  while (cudaStreamQuery(stream) == cudaErrorNotReady) usleep(100);
  host("before another launch");  // a query flushes nothing
  due();
  launch(stream);
  host("after it");
  CHECK(cudaStreamSynchronize(stream));
  due();

  sayLinesOf(5'000);
  launch();
  while (cudaStreamQuery(nullptr) == cudaErrorNotReady) usleep(100);
  pausePoint();
  host("after the pause");
  CHECK(cudaDeviceSynchronize());
  due();
  launch();
  host("before the reset");
  CHECK(cudaDeviceReset());
  due();
  host("ends");
  const bool ok = sameText("standard output", output.finish(), expected);
  return verdict("print-order", ok);
}
