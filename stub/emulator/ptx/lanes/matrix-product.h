// The inner loops of matrix instructions, over doubles.
#pragma once

namespace vgpu::emulator {

// c[m][n] += a[m][k] * b[k][n], rows one after the other; m is even, n a multiple of 8. Each element's sum is made in ascending
// order of k and rounded at each step as doubles are, so the result is the same on every processor.
using MatrixProduct = void (*)(double* c, const double* a, const double* b, int m, int n, int k);

struct MatrixProducts {
  MatrixProduct exact;  // of factors whose products a double holds: all but f64
  MatrixProduct fused;  // a product is not rounded before it is added
};

// Those for the processor's instruction set.
const MatrixProducts& matrixProducts();

}  // namespace vgpu::emulator
