#include "stub/emulator/ptx/lanes/matrix-product.h"

#include "stub/emulator/ptx/lanes/lane-op.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

constexpr int width = 8;  // columns in a vector
using Columns = double __attribute__((vector_size(width * sizeof(double))));

// `Count` vectors of columns from `from` on: they stay in registers while k advances.
template <int Count>
void exactColumns(double* c, const double* a, const double* b, int m, int n, int k, int from) {
  for (int i = 0; i < m; ++i) {
    Columns sums[Count];
    double* const out = c + i * n + from;
    __builtin_memcpy(sums, out, sizeof sums);
    for (int at = 0; at < k; ++at) {
      const double factor = a[i * k + at];
      const double* const row = b + at * n + from;
#pragma GCC unroll 4
      for (int v = 0; v < Count; ++v) {
        Columns values;
        __builtin_memcpy(&values, row + v * width, sizeof values);
        sums[v] += values * factor;
      }
    }
    __builtin_memcpy(out, sums, sizeof sums);
  }
}

void exact(double* c, const double* a, const double* b, int m, int n, int k) {
  int from = 0;
  for (; from + 4 * width <= n; from += 4 * width) exactColumns<4>(c, a, b, m, n, k, from);
  for (; from < n; from += width) exactColumns<1>(c, a, b, m, n, k, from);
}

void fused(double* c, const double* a, const double* b, int m, int n, int k) {
  for (int i = 0; i < m; ++i)
    for (int at = 0; at < k; ++at)
      for (int j = 0; j < n; ++j) c[i * n + j] = __builtin_fma(a[i * k + at], b[at * n + j], c[i * n + j]);
}

}  // namespace

MatrixProducts productsOf() { return {exact, fused}; }

}  // namespace vgpu::emulator::VGPU_ISA
