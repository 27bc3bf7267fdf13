// Vectors and triangular systems: results to the host and to the device, before and after the pause.
#include <string>

#include "blas.h"

constexpr int n = 3000, rows = 64, columns = 48;

struct Vectors {
  DeviceArray<float> x{numbers<float>(n)}, y{numbers<float>(n, 7)};
  DeviceArray<cuDoubleComplex> z{numbers<cuDoubleComplex>(n)}, w{numbers<cuDoubleComplex>(n, 9)};
  DeviceArray<double> triangle{triangular()}, right{numbers<double>(static_cast<size_t>(rows) * columns)};

  static std::vector<double> triangular() {
    auto all = numbers<double>(static_cast<size_t>(rows) * rows);
    for (int i = 0; i < rows; ++i) all[static_cast<size_t>(i) * rows + i] = 4;
    return all;
  }
};

// Results to host memory make the call wait for the GPU; results to device memory do not.
void run(cublasHandle_t h, Vectors& v, const std::string& when) {
  const float alpha = 0.5f;
  BLAS(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST));
  BLAS(cublasSaxpy(h, n, &alpha, v.x, 1, v.y, 1));
  float dot = 0, norm = 0, sum = 0;
  int largest = 0, smallest = 0;
  cuDoubleComplex complexDot{};
  double complexNorm = 0;
  BLAS(cublasSdot(h, n, v.x, 1, v.y, 1, &dot));
  BLAS(cublasSnrm2(h, n, v.y, 1, &norm));
  BLAS(cublasSasum(h, n, v.y, 2 - 1, &sum));
  BLAS(cublasIsamax(h, n, v.y, 1, &largest));
  BLAS(cublasIsamin(h, n, v.y, 1, &smallest));
  BLAS(cublasZdotc(h, n, v.z, 1, v.w, 1, &complexDot));
  BLAS(cublasDznrm2(h, n, v.z, 1, &complexNorm));
  printValue(when + " dot", dot);
  printValue(when + " nrm2", norm);
  printValue(when + " asum", sum);
  printValue(when + " amax", largest);
  printValue(when + " amin", smallest);
  printValue(when + " dotc", complexDot);
  printValue(when + " dznrm2", complexNorm);
  float a = 3, b = 4, c = 0, s = 0;
  BLAS(cublasSrotg(h, &a, &b, &c, &s));
  printValue(when + " rotg a", a);
  printValue(when + " rotg c", c);
  BLAS(cublasSrot(h, n, v.x, 1, v.y, 1, &c, &s));
  double one = 1;
  BLAS(cublasDtrsm(h, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, rows, columns, &one, v.triangle,
                   rows, v.right, rows));
  float halfDot = 0;
  BLAS(cublasDotEx(h, n, v.x, CUDA_R_32F, 1, v.y, CUDA_R_32F, 1, &halfDot, CUDA_R_32F, CUDA_R_32F));
  printValue(when + " DotEx", halfDot);
  printDigest(when + " trsm", v.right);
  printDigest(when + " axpy", v.y);

  // The same with all scalars on the device.
  DeviceArray<float> results(std::vector<float>{0.25f, 0, 0, 3, 4, 0, 0});
  DeviceArray<int> places(std::vector<int>{0, 0});
  DeviceArray<double> doubles(std::vector<double>{0.5, 0});
  BLAS(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE));
  for (int again = 0; again < 2; ++again) {
    BLAS(cublasSaxpy(h, n, results, v.x, 1, v.y, 1));
    BLAS(cublasSdot(h, n, v.x, 1, v.y, 1, static_cast<float*>(results) + 1));
    BLAS(cublasSnrm2(h, n, v.y, 1, static_cast<float*>(results) + 2));
    BLAS(cublasIsamax(h, n, v.y, 1, places));
    BLAS(cublasDtrsm(h, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, rows, columns, doubles,
                     v.triangle, rows, v.right, rows));
  }
  printDigest(when + " device results", results);
  printDigest(when + " device places", places);
  printDigest(when + " device trsm", v.right);
  printDigest(when + " device axpy", v.y);
}

int main() {
  Blas handle;
  Vectors vectors;
  run(handle, vectors, "before");
  std::vector<float> matrix = numbers<float>(12), back(12);
  DeviceArray<float> copied(20);
  BLAS(cublasSetMatrix(3, 4, sizeof(float), matrix.data(), 3, copied, 5));
  pausePoint();
  BLAS(cublasGetMatrix(3, 4, sizeof(float), copied, 5, back.data(), 3));
  if (back != matrix) return 1;
  run(handle, vectors, "after");
  return 0;
}
