// The inner loops of matrix instructions, over doubles.
#pragma once

namespace vgpu::emulator {

// c[m][n] += a[m][k] * b[k][n], in row-major order; m is even, n a multiple of 8. Each element is summed in ascending order of k and
// rounded to double at each step, so the result is the same on every processor.
using MatrixProduct = void (*)(double* c, const double* a, const double* b, int m, int n, int k);

struct MatrixProducts {
  MatrixProduct exact;  // for factors whose products are exact in a double: all but f64
  MatrixProduct fused;  // the product is not rounded before the addition
};

// The functions for the processor's instruction set.
const MatrixProducts& matrixProducts();

}  // namespace vgpu::emulator
