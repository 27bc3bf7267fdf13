// The kernel: a block of 128 threads for each tile, a thread for each column. Its text is generated, because its loops over rows, lanes and
// words are unrolled: each step uses another word of the key, read from the parameters.
#include "stub/gpu/tile-digests.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "vgpu/api/wire-value.h"

namespace vgpu::stub {

namespace {

using Schedule = Digester::Schedule;

// What the kernel uses of a key.
struct Parameters {
  std::array<uint64_t, 16> powers;  // for the words of a column: eight for each polynomial
  // For each polynomial: powers of its point, by which a value is multiplied if 1, 2, 4, 8, 16 or 32 columns follow.
  std::array<uint64_t, 12> steps;
  decltype(Schedule::nh) nh;
};
constexpr unsigned stepsOfWarp = 5, stepsOfPolynomial = 6, columnsOfWarp = 32, warps = Schedule::columns / columnsOfWarp;
constexpr unsigned rowBytes = columnsOfWarp * 16, warpBytes = Schedule::rows * rowBytes;

Parameters parametersOf(const Schedule& schedule) {
  Parameters made{};
  made.nh = schedule.nh;
  for (size_t which = 0; which < 2; ++which) {
    for (size_t i = 0; i < 8; ++i) made.powers[8 * which + i] = schedule.powers[which][i];
    uint64_t power = schedule.columnPower[which];
    for (size_t step = 0; step < stepsOfPolynomial; ++step, power = multiplyModulo(power, power))
      made.steps[stepsOfPolynomial * which + step] = power;
  }
  return made;
}

// PTX text, one statement on each line.
class Text {
 public:
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Values>(values)...);
    text += '\n';
  }
  std::string text;
};

std::string power(unsigned which, unsigned word) { return fmt::format("[key+{}]", 8 * (8 * which + word)); }
std::string step(unsigned which, unsigned number) { return fmt::format("[key+{}]", 128 + 8 * (stepsOfPolynomial * which + number)); }
std::string nhWord(unsigned number) { return fmt::format("[key+{}]", 128 + 96 + 4 * number); }

// Reduces the 128-bit number in %hi and %lo, which is below 2^122 + 2^96, modulo 2^61 - 1, into %h<which>.
void addReduction(Text& ptx, unsigned which) {
  ptx.add("shl.b64 %t, %hi, 3; shr.u64 %u, %lo, 61; or.b64 %t, %t, %u;");
  ptx.add("and.b64 %lo, %lo, %p; and.b64 %u, %t, %p; add.u64 %lo, %lo, %u;");
  ptx.add("shr.u64 %t, %t, 61; add.u64 %lo, %lo, %t;");
  ptx.add("shr.u64 %t, %lo, 61; and.b64 %lo, %lo, %p; add.u64 %lo, %lo, %t;");
  ptx.add("setp.eq.u64 %q, %lo, %p; selp.u64 %h{}, 0, %lo, %q;", which);
}

// Computes NH of the thread's column into %acc0 to %acc3.
void addColumn(Text& ptx) {
  for (unsigned lane = 0; lane < Schedule::lanes; ++lane) ptx.add("mov.u64 %acc{}, 0;", lane);
  for (unsigned row = 0; row < Schedule::rows; ++row) {
    ptx.add("ld.global.v4.u32 {{%x0, %x1, %x2, %x3}}, [%column+{}];", row * rowBytes);
    for (unsigned lane = 0; lane < Schedule::lanes; ++lane)
      for (unsigned pair = 0; pair < 4; pair += 2) {
        ptx.add("ld.param.u32 %a, {}; ld.param.u32 %b, {};", nhWord(4 * (row + lane) + pair), nhWord(4 * (row + lane) + pair + 1));
        ptx.add("add.u32 %a, %a, %x{}; add.u32 %b, %b, %x{}; mad.wide.u32 %acc{}, %a, %b, %acc{};", pair, pair + 1, lane, lane);
      }
  }
}

// Evaluates the column's words as coefficients, into %h0 and %h1.
void addWords(Text& ptx) {
  for (unsigned which = 0; which < 2; ++which) {
    ptx.add("mov.u64 %lo, 0; mov.u64 %hi, 0;");
    for (unsigned word = 0; word < 8; ++word) {
      if (word % 2 == 0)
        ptx.add("and.b64 %w, %acc{}, 0xffffffff;", word / 2);
      else
        ptx.add("shr.u64 %w, %acc{}, 32;", word / 2);
      ptx.add("ld.param.u64 %t, {}; mul.hi.u64 %u, %w, %t; mul.lo.u64 %t, %w, %t;", power(which, word));
      ptx.add("add.cc.u64 %lo, %lo, %t; addc.u64 %hi, %hi, %u;");
    }
    addReduction(ptx, which);
  }
}

// %h<which> = %h<which> * step + %w.
void addStep(Text& ptx, unsigned which, unsigned number) {
  ptx.add("ld.param.u64 %t, {}; mul.hi.u64 %hi, %h{}, %t; mul.lo.u64 %lo, %h{}, %t;", step(which, number), which, which);
  ptx.add("add.cc.u64 %lo, %lo, %w; addc.u64 %hi, %hi, 0;");
  addReduction(ptx, which);
}

// Combines the columns of a warp: each thread multiplies its value by a power of the point and adds the value of the columns that follow
// its own, until the first thread has the value of the whole warp.
void addWarp(Text& ptx) {
  for (unsigned number = 0; number < stepsOfWarp; ++number)
    for (unsigned which = 0; which < 2; ++which) {
      ptx.add("mov.b64 {{%a, %b}}, %h{};", which);
      ptx.add("shfl.sync.down.b32 %a, %a, {}, 31, -1; shfl.sync.down.b32 %b, %b, {}, 31, -1;", 1u << number, 1u << number);
      ptx.add("mov.b64 %w, {{%a, %b}};");
      addStep(ptx, which, number);
    }
}

std::string kernelText() {
  Text ptx;
  ptx.add(".version 6.4\n.target sm_50\n.address_size 64");
  ptx.add(".visible .entry digestTiles(.param .u64 address, .param .u64 out, .param .align 8 .b8 key[{}])\n{{", sizeof(Parameters));
  ptx.add(".reg .u64 %column, %out, %lo, %hi, %t, %u, %w, %p, %h0, %h1, %acc0, %acc1, %acc2, %acc3;");
  ptx.add(".reg .u32 %a, %b, %x0, %x1, %x2, %x3, %thread, %tile, %warp, %lane, %at;\n.reg .pred %q, %first;");
  ptx.add(".shared .align 16 .b8 ofWarps[{}];", 16 * warps);
  ptx.add("mov.u64 %p, {};", (uint64_t{1} << 61) - 1);
  ptx.add("mov.u32 %thread, %tid.x; mov.u32 %tile, %ctaid.x; shr.u32 %warp, %thread, 5; and.b32 %lane, %thread, 31;");
  ptx.add("ld.param.u64 %column, [address]; cvta.to.global.u64 %column, %column;");
  ptx.add("mul.wide.u32 %t, %tile, {}; add.u64 %column, %column, %t;", tileBytes);
  ptx.add("mul.wide.u32 %t, %warp, {}; add.u64 %column, %column, %t;", warpBytes);
  ptx.add("mul.wide.u32 %t, %lane, 16; add.u64 %column, %column, %t;");
  addColumn(ptx);
  addWords(ptx);
  addWarp(ptx);
  ptx.add("setp.ne.u32 %first, %lane, 0; mov.u32 %at, ofWarps; mad.lo.u32 %at, %warp, 16, %at;");
  ptx.add("@!%first st.shared.v2.u64 [%at], {{%h0, %h1}};");
  ptx.add("bar.sync 0; setp.ne.u32 %first, %thread, 0; @%first ret;");
  for (unsigned warp = 1; warp < warps; ++warp)
    for (unsigned which = 0; which < 2; ++which) {
      ptx.add("ld.shared.u64 %w, [ofWarps+{}];", 16 * warp + 8 * which);
      addStep(ptx, which, stepsOfWarp);
    }
  ptx.add("ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out; mul.wide.u32 %t, %tile, 16; add.u64 %out, %out, %t;");
  ptx.add("st.global.v2.u64 [%out], {{%h0, %h1}};\nret;\n}}");
  return ptx.text;
}

}  // namespace

TileDigests::~TileDigests() {
  if (module != nullptr) driver.cuModuleUnload(module);
}

bool TileDigests::load() {
  if (std::exchange(tried, true)) return function != nullptr;
  static const std::string text = kernelText();
  if (driver.cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr) != CUDA_SUCCESS) {
    module = nullptr;
  } else if (driver.cuModuleGetFunction(&function, module, "digestTiles") != CUDA_SUCCESS) {
    function = nullptr;
  }
  return function != nullptr;
}

CUresult TileDigests::digest(const Digester& digester, uint64_t address, uint32_t tiles, CUdeviceptr out, CUstream stream) const {
  Parameters key = parametersOf(digester.schedule());
  void* parameters[] = {&address, &out, &key};
  return driver.cuLaunchKernel(function, tiles, 1, 1, Schedule::columns, 1, 1, 0, stream, parameters, nullptr);
}

}  // namespace vgpu::stub
