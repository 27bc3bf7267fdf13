// Matrix products in every type, single, batched and strided, with scalars on the host and on the device, twice: before and after the
// pause.
#include <string>

#include "blas.h"

constexpr int m = 96, n = 80, k = 112, batch = 3;

// One type's matrices; `alpha` and `beta` on host and device.
template <typename In, typename Out, typename Scale>
struct Matrices {
  DeviceArray<In> a{numbers<In>(static_cast<size_t>(m) * k * batch)}, b{numbers<In>(static_cast<size_t>(k) * n * batch, 5)};
  DeviceArray<Out> c{numbers<Out>(static_cast<size_t>(m) * n * batch, 11)};
  Scale alpha = numberAt<Scale>(3), beta = numberAt<Scale>(4);
  DeviceArray<Scale> scalars{std::vector<Scale>{alpha, beta}};

  DeviceArray<In*> as{pointers(a, static_cast<size_t>(m) * k)}, bs{pointers(b, static_cast<size_t>(k) * n)};
  DeviceArray<Out*> cs{pointers(c, static_cast<size_t>(m) * n)};

  template <typename T>
  static std::vector<T*> pointers(const DeviceArray<T>& first, size_t apart) {
    std::vector<T*> all;
    for (int i = 0; i < batch; ++i) all.push_back(static_cast<T*>(first) + i * apart);
    return all;
  }

  // `call` gets the two scalars where the pointer mode expects them.
  template <typename Call>
  void run(cublasHandle_t handle, const std::string& name, Call call) {
    for (bool onDevice : {false, true}) {
      BLAS(cublasSetPointerMode(handle, onDevice ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST));
      for (int again = 0; again < 2; ++again)
        call(onDevice ? static_cast<Scale*>(scalars) : &alpha, onDevice ? static_cast<Scale*>(scalars) + 1 : &beta);
      printDigest(name + (onDevice ? " device" : " host"), c);
    }
    BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  }
};

#define GEMM(letter, type)                                                                                                    \
  void gemm##letter(cublasHandle_t h) {                                                                                       \
    Matrices<type, type, type> x;                                                                                             \
    x.run(h, #letter "gemm", [&](auto* alpha, auto* beta) {                                                                   \
      BLAS(cublas##letter##gemm(h, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, alpha, x.a, m, x.b, n, beta, x.c, m));                  \
    });                                                                                                                       \
    x.run(h, #letter "gemmBatched", [&](auto* alpha, auto* beta) {                                                            \
      BLAS(cublas##letter##gemmBatched(h, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, alpha, x.as, k, x.bs, k, beta, x.cs, m, batch)); \
    });                                                                                                                       \
    x.run(h, #letter "gemmStridedBatched", [&](auto* alpha, auto* beta) {                                                     \
      BLAS(cublas##letter##gemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, alpha, x.a, m, m * k, x.b, k, k * n, beta, \
                                              x.c, m, m * n, batch));                                                         \
    });                                                                                                                       \
  }
GEMM(S, float)
GEMM(D, double)
GEMM(C, cuComplex)
GEMM(Z, cuDoubleComplex)
GEMM(H, __half)

// The same with GemmEx, which takes the types as arguments.
template <typename In, typename Out, typename Scale>
void gemmEx(cublasHandle_t h, const char* name, cudaDataType in, cudaDataType out, cublasComputeType_t compute) {
  Matrices<In, Out, Scale> x;
  x.run(h, std::string("GemmEx ") + name, [&](auto* alpha, auto* beta) {
    BLAS(cublasGemmEx(h, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, alpha, x.a, in, k, x.b, in, k, beta, x.c, out, m, compute,
                      CUBLAS_GEMM_DEFAULT));
  });
  x.run(h, std::string("GemmStridedBatchedEx ") + name, [&](auto* alpha, auto* beta) {
    BLAS(cublasGemmStridedBatchedEx(h, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, alpha, x.a, in, k, m * k, x.b, in, k, k * n, beta, x.c,
                                    out, m, m * n, batch, compute, CUBLAS_GEMM_DEFAULT));
  });
}

void gemmAll(cublasHandle_t h) {
  gemmS(h);
  gemmD(h);
  gemmC(h);
  gemmZ(h);
  gemmH(h);
  gemmEx<__half, __half, __half>(h, "fp16", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F);
  gemmEx<__half, float, float>(h, "fp16 to fp32", CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  gemmEx<__nv_bfloat16, __nv_bfloat16, float>(h, "bf16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F);
  gemmEx<float, float, float>(h, "tf32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32);
  gemmEx<signed char, int, int>(h, "int8", CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I);
  gemmEx<double, double, double>(h, "fp64", CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F);
  gemmEx<cuComplex, cuComplex, cuComplex>(h, "complex", CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F);
}

int main() {
  Blas handle;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  BLAS(cublasSetStream(handle, stream));
  gemmAll(handle);
  BLAS(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
  Matrices<float, float, float> kept;
  kept.run(handle, "before", [&](auto* alpha, auto* beta) {
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, alpha, kept.a, m, kept.b, k, beta, kept.c, m));
  });
  pausePoint();
  // The handle keeps its stream and mode over the pause; memory keeps its contents.
  kept.run(handle, "after", [&](auto* alpha, auto* beta) {
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, alpha, kept.a, m, kept.b, k, beta, kept.c, m));
  });
  cublasMath_t mode;
  cudaStream_t found;
  BLAS(cublasGetMathMode(handle, &mode));
  BLAS(cublasGetStream(handle, &found));
  if (mode != CUBLAS_TF32_TENSOR_OP_MATH || found != stream) return 1;
  BLAS(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
  gemmAll(handle);
  CHECK(cudaStreamSynchronize(stream));
  return 0;
}
