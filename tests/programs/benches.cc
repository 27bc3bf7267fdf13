// The programs of vgpu-bench in one executable, which is linked to under each name: most of a small CUDA program is the runtime.
#include <cstdio>
#include <cstring>

#define BENCH(name, main) extern "C" int main(int, char**);
#include "benches.inc"
#undef BENCH

namespace {

struct Program {
  const char* name;
  int (*main)(int, char**);
};

constexpr Program programs[] = {
#define BENCH(name, main) {name, main},
#include "benches.inc"
};

}  // namespace

int main(int argc, char** argv) {
  const char* slash = std::strrchr(argv[0], '/');
  const char* called = slash == nullptr ? argv[0] : slash + 1;
  for (auto& program : programs)
    if (std::strcmp(program.name, called) == 0) return program.main(argc, argv);
  std::fprintf(stderr, "%s is a name of no program of vgpu-bench. There are:", called);
  for (auto& program : programs) std::fprintf(stderr, " %s", program.name);
  std::fprintf(stderr, "\n");
  return 2;
}
