// At least one call of each family of cuBLAS and cuBLASLt by its C interface, with every kind of argument. Results on the host must be the
// same before and after the pause. With the recording library of tests/libraries the results depend on all arguments and on all settings of
// the objects.
#include "blas.h"

namespace {

std::vector<unsigned char> seen;

template <typename T>
void note(const T& value) {
  auto* bytes = reinterpret_cast<const unsigned char*>(&value);
  seen.insert(seen.end(), bytes, bytes + sizeof value);
}

struct Families {
  cublasHandle_t h = nullptr;
  cudaStream_t stream = nullptr;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  cublasLtMatrixLayoutOpaque_t own;  // in the program's memory
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  DeviceArray<float> x{numbers<float>(4096)}, y{numbers<float>(4096, 3)}, z{numbers<float>(4096, 5)};
  DeviceArray<double> d{numbers<double>(4096)};
  DeviceArray<char> workspace{1 << 20};
  std::vector<float*> pointers;
  DeviceArray<float*> xs;

  static std::vector<float*> three(float* first) { return {first, first + 256, first + 512}; }

  Families() : pointers(three(x)), xs(pointers) {
    cublasStatus_t status = cublasCreate(&h);
    if (status == CUBLAS_STATUS_NOT_INITIALIZED) std::exit(notHere);
    BLAS(status);
    CHECK(cudaStreamCreate(&stream));
    BLAS(cublasSetStream(h, stream));
    BLAS(cublasSetWorkspace(h, workspace, 1 << 20));
    BLAS(cublasSetMathMode(h, CUBLAS_PEDANTIC_MATH));
    BLAS(cublasSetAtomicsMode(h, CUBLAS_ATOMICS_ALLOWED));
    BLAS(cublasSetSmCountTarget(h, 2));
    BLAS(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    cublasOperation_t transposed = CUBLAS_OP_T;
    BLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    BLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 16, 16, 16));
    BLAS(cublasLtMatrixLayoutInit(&own, CUDA_R_32F, 16, 16, 16));
    int32_t batch = 1;
    BLAS(cublasLtMatrixLayoutSetAttribute(&own, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
    BLAS(cublasLtMatmulPreferenceCreate(&preference));
  }
  ~Families() {
    BLAS(cublasLtMatmulPreferenceDestroy(preference));
    BLAS(cublasLtMatrixLayoutDestroy(layout));
    BLAS(cublasLtMatmulDescDestroy(product));
    BLAS(cublasDestroy(h));
    CHECK(cudaStreamDestroy(stream));
  }

  void settings() {
    cublasMath_t math;
    cublasAtomicsMode_t atomics;
    int units = 0, version = 0;
    cudaStream_t found;
    BLAS(cublasGetMathMode(h, &math));
    BLAS(cublasGetAtomicsMode(h, &atomics));
    BLAS(cublasGetSmCountTarget(h, &units));
    BLAS(cublasGetVersion(h, &version));
    BLAS(cublasGetStream(h, &found));
    if (found != stream) std::exit(1);
    note(math), note(atomics), note(units), note(version);
  }

  void levels() {
    const float alpha = 2, beta = 0.5f;
    float result[4] = {};
    int place = 0;
    BLAS(cublasSaxpy(h, 300, &alpha, x, 1, y, 1));
    BLAS(cublasSdot(h, 300, x, 1, y, 1, &result[0]));
    BLAS(cublasSnrm2(h, 300, y, 1, &result[1]));
    BLAS(cublasIsamax(h, 300, y, 1, &place));
    BLAS(cublasSrotg(h, &result[0], &result[1], &result[2], &result[3]));
    note(result), note(place);
    BLAS(cublasSgemv(h, CUBLAS_OP_N, 16, 16, &alpha, x, 16, y, 1, &beta, z, 1));
    BLAS(cublasStrsv(h, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 8, x, 16, z, 1));
    BLAS(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_T, 16, 16, 16, &alpha, x, 16, y, 16, &beta, z, 16));
    BLAS(cublasSgemm_64(h, CUBLAS_OP_N, CUBLAS_OP_T, 16, 16, 16, &alpha, x, 16, y, 16, &beta, z, 16));
    // The first call of its kind waits for the library's status; a call that it refuses is refused every time.
    for (int again = 0; again < 2; ++again)
      if (cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_T, -77, 16, 16, &alpha, x, 16, y, 16, &beta, z, 16) != CUBLAS_STATUS_INVALID_VALUE)
        std::exit(1);
  }

  void batches() {
    const float alpha = 2, beta = 0;
    BLAS(cublasSgemmBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &alpha, xs, 8, xs, 8, &beta, xs, 8, 3));
    BLAS(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &alpha, x, 8, 64, y, 8, 64, &beta, z, 8, 64, 3));
    const cublasOperation_t operations[] = {CUBLAS_OP_N, CUBLAS_OP_N};
    const int eight[] = {8, 8}, sizes[] = {2, 1};
    const float alphas[] = {1, 2}, betas[] = {0, 0};
    BLAS(cublasSgemmGroupedBatched(h, operations, operations, eight, eight, eight, alphas, xs, eight, xs, eight, betas, xs, eight, 2,
                                   sizes));
    int info = -7;
    DeviceArray<int> pivots(24), infos(3);
    BLAS(cublasSgetrfBatched(h, 8, xs, 8, pivots, infos, 3));
    BLAS(cublasSgetrsBatched(h, CUBLAS_OP_N, 8, 1, xs, 8, pivots, xs, 8, &info, 3));
    note(info);
    CHECK(cudaStreamSynchronize(stream));
  }

  void extended() {
    const float alpha = 1, beta = 0;
    double result = 0;
    BLAS(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 16, 16, 16, &alpha, x, CUDA_R_32F, 16, y, CUDA_R_32F, 16, &beta, z, CUDA_R_32F, 16,
                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    BLAS(cublasDotEx(h, 100, d, CUDA_R_64F, 1, d, CUDA_R_64F, 1, &result, CUDA_R_64F, CUDA_R_64F));
    note(result);
    BLAS(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE));
    BLAS(cublasSdot(h, 300, x, 1, y, 1, z));
    BLAS(cublasSscal(h, 300, z, y, 1));
    cublasPointerMode_t mode;
    BLAS(cublasGetPointerMode(h, &mode));
    if (mode != CUBLAS_POINTER_MODE_DEVICE) std::exit(1);
    BLAS(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST));
  }

  void lt() {
    auto handle = reinterpret_cast<cublasLtHandle_t>(h);  // cublasLt.h: a cuBLAS handle can be used as a cuBLASLt handle
    const float alpha = 1, beta = 0;
    cublasLtMatmulHeuristicResult_t found[2] = {};
    int count = 0;
    BLAS(cublasLtMatmulAlgoGetHeuristic(handle, product, layout, &own, layout, layout, preference, 2, found, &count));
    note(found[0].workspaceSize), note(count);
    BLAS(cublasLtMatmul(handle, product, &alpha, x, layout, y, &own, &beta, z, layout, z, layout, &found[0].algo, workspace, 1 << 20,
                        stream));
    cublasOperation_t operation;
    size_t written = 0;
    BLAS(cublasLtMatmulDescGetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &operation, sizeof operation, &written));
    note(operation), note(written);
  }
};

}  // namespace

int main() {
  Families all;
  auto run = [&] {
    seen.clear();
    CHECK(cudaMemset(all.y, 0, 4096));
    all.settings();
    all.levels();
    all.batches();
    all.extended();
    all.lt();
    CHECK(cudaStreamSynchronize(all.stream));
    return seen;
  };
  const bool computes = std::getenv("VGPU_LIBRARIES") == nullptr;  // the recording library does not change the data
  run();
  auto before = run();
  if (!computes && run() != before) return 1;
  pausePoint();
  auto after = run();
  if (!computes && after != before) return 1;
  std::vector<float> matrix = numbers<float>(12), back(12);
  DeviceArray<float> copied(20);
  BLAS(cublasSetMatrix(3, 4, sizeof(float), matrix.data(), 3, copied, 5));
  BLAS(cublasGetMatrix(3, 4, sizeof(float), copied, 5, back.data(), 3));
  return back == matrix ? 0 : 1;
}
