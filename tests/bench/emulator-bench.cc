// Speed of the PTX interpreter. Figures are reported, never asserted.
#include <benchmark/benchmark.h>

#include <cstring>
#include <stdexcept>

#include "stub/emulator/ptx/module.h"
#include "stub/emulator/ptx/run/interpreter.h"

namespace vgpu::emulator {
namespace {

class OneRegion : public Memory {
 public:
  explicit OneRegion(size_t bytes) : bytes(bytes) {}
  static constexpr uint64_t regionBase = 0x200000000000;
  std::optional<Region> find(uint64_t address) const override {
    if (address - regionBase >= bytes.size()) return std::nullopt;
    return Region{regionBase, bytes.size(), const_cast<std::byte*>(bytes.data()), true};
  }
  std::string describe(uint64_t) const override { return "outside the only region"; }
  std::byte* host() { return bytes.data(); }

 private:
  std::vector<std::byte> bytes;
};

constexpr std::string_view headerText = ".version 9.0\n.target sm_75\n.address_size 64\n";

// A loop of 16 dependent fused multiply-adds, as nvcc unrolls one.
std::string fmaLoop(const char* type, const char* half) {
  std::string text(headerText);
  const std::string t = type;
  text += ".visible .entry k(.param .u64 out, .param .u32 n)\n{\n.reg .pred %p;\n.reg .b32 %r<4>;\n.reg ." + t +
          " %f<3>;\n.reg .b64 %rd<4>;\n"
          "ld.param.u64 %rd1, [out];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\ncvt.rn." +
          t + ".u32 %f0, %r2;\nmov." + t + " %f1, " + half +
          ";\n"
          "mov.u32 %r3, 0;\nL:\n";
  for (int i = 0; i < 16; ++i) text += "fma.rn." + t + " %f0, %f0, %f1, %f1;\n";
  text +=
      "add.s32 %r3, %r3, 16;\nsetp.lt.s32 %p, %r3, %r1;\n@%p bra L;\n"
      "mul.wide.u32 %rd2, %r2, 8;\nadd.s64 %rd3, %rd1, %rd2;\nst.global." +
      t + " [%rd3], %f0;\nret;\n}\n";
  return text;
}

struct Prepared {
  Prepared(const std::string& text, size_t bytes) : module(Module::parse(text, 90)), memory(bytes) {
    module->placeTogether(OneRegion::regionBase, memory.host());
    launch.kernel = module->findKernel("k");
    launch.memory = &memory;
  }
  void run(std::span<const std::byte> parameters) {
    launch.parameters = parameters;
    if (const auto fault = emulator::run(launch, output)) throw std::runtime_error(fault->report);
  }
  std::shared_ptr<Module> module;
  OneRegion memory;
  Launch launch{};
  std::string output;
};

void fmaBench(benchmark::State& state, const char* type, const char* half) {
  Prepared prepared(fmaLoop(type, half), 1 << 16);
  constexpr uint32_t steps = 4096;
  std::byte parameters[12];
  const uint64_t out = OneRegion::regionBase;
  std::memcpy(parameters, &out, 8);
  std::memcpy(parameters + 8, &steps, 4);
  prepared.launch.block = {1024, 1, 1};
  for (auto _ : state) prepared.run(parameters);
  state.counters["thread-FMAs"] =
      benchmark::Counter(1024.0 * steps * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(fmaBench, float, "f32", "0f3F000000")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fmaBench, double, "f64", "0d3FE0000000000000")->Unit(benchmark::kMillisecond);

constexpr std::string_view vectorAddText =
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n.reg .pred %p<2>;\n.reg .f32 "
    "%f<4>;\n"
    ".reg .b32 %r<6>;\n.reg .b64 %rd<11>;\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nld.param.u64 %rd3, [c];\n"
    "ld.param.u32 %r2, [n];\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmad.lo.s32 %r1, %r3, "
    "%r4, %r5;\n"
    "setp.ge.s32 %p1, %r1, %r2;\n@%p1 bra OUT;\ncvta.to.global.u64 %rd4, %rd1;\nmul.wide.s32 %rd5, %r1, 4;\nadd.s64 "
    "%rd6, %rd4, %rd5;\n"
    "cvta.to.global.u64 %rd7, %rd2;\nadd.s64 %rd8, %rd7, %rd5;\nld.global.f32 %f1, [%rd8];\nld.global.f32 %f2, "
    "[%rd6];\n"
    "add.f32 %f3, %f2, %f1;\ncvta.to.global.u64 %rd9, %rd3;\nadd.s64 %rd10, %rd9, %rd5;\nst.global.f32 [%rd10], "
    "%f3;\nOUT:\nret;\n}\n";

void vectorAdd(benchmark::State& state) {
  Prepared prepared(std::string(headerText) + std::string(vectorAddText), 1 << 20);
  constexpr uint32_t elementCount = 50000;
  std::byte parameters[28];
  for (int i = 0; i < 3; ++i) {
    const uint64_t address = OneRegion::regionBase + static_cast<uint64_t>(i) * 4 * elementCount;
    std::memcpy(parameters + i * 8, &address, 8);
  }
  std::memcpy(parameters + 24, &elementCount, 4);
  prepared.launch.block = {256, 1, 1};
  prepared.launch.grid = {(elementCount + 255) / 256, 1, 1};
  prepared.launch.workers = static_cast<int>(state.range(0));
  for (auto _ : state) prepared.run(parameters);
}
BENCHMARK(vectorAdd)->Arg(1)->Arg(2)->Unit(benchmark::kMicrosecond)->UseRealTime();

// A module of many kernels, of which one is launched.
void loadModule(benchmark::State& state) {
  std::string text(headerText), body = fmaLoop("f32", "0f3F000000");
  body = body.substr(body.find("(.param"));
  text += ".visible .entry k" + body;
  for (int i = 0; text.size() < 10'000'000; ++i) text += ".visible .entry unused" + std::to_string(i) + body;
  std::vector<std::byte> image(1 << 20);
  for (auto _ : state) {
    const auto module = Module::parse(text, 90);
    if (module->imageBytes() > image.size()) image.resize(module->imageBytes());
    module->placeTogether(OneRegion::regionBase, image.data());
    benchmark::DoNotOptimize(module->findKernel("k"));
  }
}
BENCHMARK(loadModule)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vgpu::emulator

BENCHMARK_MAIN();
