// A module that is large to send and slow to compile, generated at run time: a program's second run finds it in the image cache.
//
//   many-kernels [KERNELS]             loads it, checks some kernels, pauses, checks again
//   many-kernels --bench full|quick    prints the time to load it: 3,000 kernels in 5 MB of PTX, or 300
#include <string>

#include "bench.h"
#include "driver-entry.h"

namespace {

constexpr unsigned rounds = 36;

// The constants in a kernel's code: different for every kernel.
unsigned factorOf(unsigned kernel, unsigned round) { return (kernel * 2654435761u + round * 40503u) | 1; }
unsigned addendOf(unsigned kernel, unsigned round) { return kernel * 69069u + round; }

std::string nameOf(unsigned kernel) { return "kernel" + std::to_string(kernel); }

// Each kernel transforms its input in its own rounds, adds the number of launches of all kernels, and stores the result.
std::string imageOf(unsigned kernels) {
  std::string text = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 runs;\n";
  for (unsigned kernel = 0; kernel < kernels; ++kernel) {
    text += ".visible .entry " + nameOf(kernel) +
            "(.param .u64 out, .param .u32 in)\n{\n"
            "  .reg .b32 %x, %n;\n  .reg .b64 %p, %r;\n"
            "  ld.param.u64 %p, [out];\n  cvta.to.global.u64 %p, %p;\n  ld.param.u32 %x, [in];\n";
    for (unsigned round = 0; round < rounds; ++round)
      text += "  mad.lo.u32 %x, %x, " + std::to_string(factorOf(kernel, round)) + ", " +
              std::to_string(addendOf(kernel, round)) + ";\n";
    text +=
        "  mov.u64 %r, runs;\n  atom.global.add.u32 %n, [%r], 1;\n"
        "  add.u32 %x, %x, %n;\n  st.global.u32 [%p], %x;\n  ret;\n}\n";
  }
  return text;
}

unsigned expected(unsigned kernel, unsigned x, unsigned runs) {
  for (unsigned round = 0; round < rounds; ++round) x = x * factorOf(kernel, round) + addendOf(kernel, round);
  return x + runs;
}

class Module {
 public:
  explicit Module(const std::string& image) {
    check(find<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, image.c_str()), "cuModuleLoadData");
  }

  unsigned run(unsigned kernel, unsigned x) {
    CUfunction function;
    check(getFunction(&function, module, nameOf(kernel).c_str()), "cuModuleGetFunction");
    unsigned* address = out;
    void* parameters[] = {&address, &x};
    check(launchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
    return out.download()[0];
  }

 private:
  decltype(&cuModuleGetFunction) getFunction = find<decltype(getFunction)>("cuModuleGetFunction");
  decltype(&cuLaunchKernel) launchKernel = find<decltype(launchKernel)>("cuLaunchKernel");
  CUmodule module;
  DeviceArray<unsigned> out{1};
};

int runBench(const Bench& bench) {
  const unsigned kernels = bench.size(3000u, 300u);
  const std::string image = imageOf(kernels);
  auto start = Clock::now();
  CHECK(cudaFree(nullptr));
  printFigure("first call", "us", microsecondsSince(start));
  start = Clock::now();
  Module module(image);
  printFigure("module load", "us", microsecondsSince(start));
  start = Clock::now();
  std::vector<unsigned> results;
  for (unsigned kernel = 0; kernel < kernels; kernel += kernels / 10) results.push_back(module.run(kernel, kernel));
  printFigure("ten kernels", "us", microsecondsSince(start));
  printFigure("image", "KiB", static_cast<double>(image.size()) / 1024);
  return bench.digest(results);
}

}  // namespace

int main(int argc, char** argv) {
  if (Bench bench(argc, argv); bench) return runBench(bench);
  const unsigned kernels = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 200;
  CHECK(cudaFree(nullptr));
  Module module(imageOf(kernels));
  unsigned runs = 0;
  auto areRight = [&] {
    bool ok = true;
    for (unsigned kernel = 0; kernel < kernels; kernel += 17, ++runs)
      ok &= EXPECT(module.run(kernel, kernel + 5) == expected(kernel, kernel + 5, runs));
    return ok;
  };
  bool ok = areRight();
  pausePoint();
  ok &= areRight();
  return verdict("many-kernels", ok);
}
