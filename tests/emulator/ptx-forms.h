// One kernel for every form of the instructions whose result PTX leaves no freedom in, and the operands that they are
// tried with. Used by the test of the interpreter and by the program that records what a real GPU answers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vgpu::emulator {

struct Form {
  std::string text;                   // `D`, `A`, `B`, `C` stand for operands: "add.s32 D, A, B"
  std::string result;                 // type of D: b16, b32, b64 or pred
  std::vector<std::string> operands;  // what A, B and C are: a type, `shift` (a 32-bit amount around a width) or
                                      // `field` (the same, below 256), `least` (floats whose products and quotients are about
                                      // the least normal number), `outside` (halves, often the NaN of fma.oob)
};

std::vector<Form> allForms();
std::vector<Form> widerForms();        // more, in a file of their own
std::vector<Form> scalarVideoForms();  // the same, which are not recorded yet

constexpr int formThreads = 2048;
// The kernel `k(in, out)`: thread t reads 3 x 8 bytes at in + 24 t and writes 8 at out + 8 t.
std::string formKernel(const Form&);
std::vector<uint64_t> formInputs(const Form&);  // 3 for each thread
// Instructions of a whole warp: `body` runs in a block of 32 threads with %r0..%r15 (32-bit) or %q0..%q7 (64-bit)
// filled from the thread's 64 bytes of input, %t0 the lane and a 2048-byte shared variable `s`; it leaves its results
// in %o0..%o7 (or %w0..%w7).
struct WarpForm {
  std::string body;
  std::string inputs;  // what the input words hold: f16, bf16, f32, f64, b32, or `f16/6`
  bool wide = false;   // results are 64-bit
};
std::vector<WarpForm> allWarpForms();
std::string warpFormKernel(const WarpForm&);
std::vector<uint32_t> warpFormInputs(const WarpForm&);  // 16 words for each of 32 lanes
// What the golden file keeps of the results.
uint64_t formDigest(std::span<const uint64_t> results);

}  // namespace vgpu::emulator
