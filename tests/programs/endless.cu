// A kernel that runs until the program ends it. With the argument `wait` the program never does: the caller kills the program. With `pause`
// it does so after its pause point.
#include <cstring>

#include "program.h"

__global__ void spin(const volatile int* flag, int* ended) {
  while (*flag == 0) {
  }
  *ended = 1;
}

int main(int argc, char** argv) {
  int* words;
  CHECK(cudaMallocHost(&words, 2 * sizeof(int)));
  words[0] = words[1] = 0;
  spin<<<1, 1>>>(words, words + 1);
  CHECK(cudaGetLastError());
  std::printf("endless: works\n");
  std::fflush(stdout);
  if (argc == 2 && std::strcmp(argv[1], "pause") == 0) pausePoint();
  if (argc < 2 || std::strcmp(argv[1], "wait") != 0) *static_cast<volatile int*>(words) = 1;
  CHECK(cudaDeviceSynchronize());
  return verdict("endless", EXPECT(words[1] == 1));
}
