#include "stub/emulator/ptx/lanes/matrix-product.h"

#include "stub/emulator/ptx/lanes/lane-op.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

// Columns in a register of this instruction set; wider vectors would be spilled to memory.
#if defined(__AVX512F__)
constexpr int width = 8;
#elif defined(__AVX__)
constexpr int width = 4;
#else
constexpr int width = 2;
#endif
using Columns = double __attribute__((vector_size(width * sizeof(double))));

// Computes `Rows` rows of `Count` vectors of columns, whose sums stay in registers over all k.
template <int Rows, int Count>
void exactBlock(double* c, const double* a, const double* b, int n, int k) {
  Columns sums[Rows][Count];
  for (int i = 0; i < Rows; ++i) __builtin_memcpy(sums[i], c + i * n, sizeof sums[i]);
  for (int at = 0; at < k; ++at, b += n) {
#pragma GCC unroll 8
    for (int v = 0; v < Count; ++v) {
      Columns values;
      __builtin_memcpy(&values, b + v * width, sizeof values);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) sums[i][v] += values * a[i * k + at];
    }
  }
  for (int i = 0; i < Rows; ++i) __builtin_memcpy(c + i * n, sums[i], sizeof sums[i]);
}

// Two rows of four vectors are eight independent sums; m is even.
void exact(double* c, const double* a, const double* b, int m, int n, int k) {
  constexpr int most = 4, narrow = 8 / width < most ? 8 / width : most;
  for (int i = 0; i < m; i += 2) {
    int from = 0;
    for (; from + most * width <= n; from += most * width) exactBlock<2, most>(c + i * n + from, a + i * k, b + from, n, k);
    for (; from < n; from += narrow * width) exactBlock<2, narrow>(c + i * n + from, a + i * k, b + from, n, k);
  }
}

void fused(double* c, const double* a, const double* b, int m, int n, int k) {
  for (int i = 0; i < m; ++i)
    for (int at = 0; at < k; ++at)
      for (int j = 0; j < n; ++j) c[i * n + j] = __builtin_fma(a[i * k + at], b[at * n + j], c[i * n + j]);
}

}  // namespace

MatrixProducts productsOf() { return {exact, fused}; }

}  // namespace vgpu::emulator::VGPU_ISA
