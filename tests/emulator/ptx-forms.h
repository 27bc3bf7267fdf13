// A kernel for every form of the instructions whose results PTX defines completely, and their test operands. Used by the interpreter's test
// and by the program that records the results of a real GPU.
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
std::vector<Form> widerForms();        // further forms, in a separate file
std::vector<Form> scalarVideoForms();  // further forms that have not been recorded yet

constexpr int formThreads = 2048;
// The kernel `k(in, out)`: thread t reads 3 x 8 bytes at in + 24 t and writes 8 at out + 8 t.
std::string formKernel(const Form&);
std::vector<uint64_t> formInputs(const Form&);  // 3 for each thread
// Instructions of a whole warp: `body` runs in a block of 32 threads. %r0..%r15 (32-bit) or %q0..%q7 (64-bit) hold the thread's 64 bytes of
// input, %t0 the lane, and `s` is a shared variable of 2048 bytes; it leaves its results in %o0..%o7 (or %w0..%w7).
struct WarpForm {
  std::string body;
  std::string inputs;  // format of the input words: f16, bf16, f32, f64, b32, or `f16/6`
  bool wide = false;   // results are 64-bit
};
std::vector<WarpForm> allWarpForms();
std::string warpFormKernel(const WarpForm&);
std::vector<uint32_t> warpFormInputs(const WarpForm&);  // 16 words for each of 32 lanes
// Digest of the results, as in the golden file.
uint64_t formDigest(std::span<const uint64_t> results);

}  // namespace vgpu::emulator
