// Makes only queries that the worker must serve, for argv[1] seconds (default 1): whenever it is stopped, migrated or killed, it is in a
// call that waits for the worker. Prints a line when it begins.
#include "program.h"

#include <chrono>

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  size_t available = 0, found = 0, expected = 0;
  CHECK(cudaMemGetInfo(&available, &expected));
  std::printf("questions: running\n");
  std::fflush(stdout);

  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  bool ok = true;
  do {
    CHECK(cudaMemGetInfo(&available, &found));
    ok = EXPECT(found == expected);
  } while (ok && std::chrono::steady_clock::now() < end);
  return verdict("questions", ok);
}
