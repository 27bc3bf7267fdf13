// The same matrix products with new descriptors each time, as frameworks do: the library gets the same settings each time, whichever
// destroyed descriptors the worker reuses.
#include "blas.h"

constexpr int kinds = 3, rounds = 8;

static cublasLtHandle_t lt;
static cudaStream_t stream;
static float *data, *bias;

// The recording library's digest of all settings of a product.
using Answer = cublasLtMatmulHeuristicResult_t;

// A product with the bias and the number of multiprocessors of that kind; the last kind has another attribute, which is set after the
// library has used the descriptor.
static Answer multiply(int kind) {
  const float alpha = 1, beta = 0;
  const void* of = bias + 64 * kind;
  cublasOperation_t transposed = CUBLAS_OP_T;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t layouts[2];
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulAlgo_t algorithm{};
  size_t room = 4096;
  int32_t processors = kind + 1;
  Answer answer{};
  BLAS(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  BLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
  BLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &of, sizeof of));
  BLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &processors, sizeof processors));
  for (auto& layout : layouts) BLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 16, 16, 16));
  BLAS(cublasLtMatmulPreferenceCreate(&preference));
  BLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
  auto compute = [&] {
    BLAS(cublasLtMatmul(lt, product, &alpha, data, layouts[0], data, layouts[1], &beta, data, layouts[1], data, layouts[1], nullptr, nullptr,
                        0, stream));
  };
  compute();
  if (kind == kinds - 1) {
    BLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &transposed, sizeof transposed));
    compute();
  }
  BLAS(cublasLtMatmulAlgoCheck(lt, product, layouts[0], layouts[1], layouts[1], layouts[1], &algorithm, &answer));
  BLAS(cublasLtMatmulPreferenceDestroy(preference));
  for (auto& layout : layouts) BLAS(cublasLtMatrixLayoutDestroy(layout));
  BLAS(cublasLtMatmulDescDestroy(product));
  return answer;
}

int main() {
  cublasStatus_t status = cublasLtCreate(&lt);
  if (status == CUBLAS_STATUS_NOT_INITIALIZED) return notHere;
  BLAS(status);
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc(&data, 4096));
  CHECK(cudaMalloc(&bias, 4096));
  Answer first[kinds];
  for (int kind = 0; kind < kinds; ++kind) first[kind] = multiply(kind);
  for (int kind = 1; kind < kinds; ++kind)
    if (memcmp(&first[0], &first[kind], sizeof first[0]) == 0) return fprintf(stderr, "kind %d is told as kind 0\n", kind), 1;
  for (int round = 0; round < rounds; ++round) {
    if (round == rounds / 2) pausePoint();
    for (int kind = 0; kind < kinds; ++kind) {
      const Answer again = multiply(kind);
      if (memcmp(&first[kind], &again, sizeof again) == 0) continue;
      fprintf(stderr, "in round %d the library is told otherwise of kind %d\n", round, kind);
      return 1;
    }
  }
  CHECK(cudaStreamSynchronize(stream));
  BLAS(cublasLtDestroy(lt));
  return 0;
}
