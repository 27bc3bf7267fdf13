// cuBLAS calls that refer to destroyed objects, or to nothing: memory beyond an allocation, for zero elements; memory, a workspace and a
// stream that were released while a captured call that uses them, or a handle on which they were set, still exists.
#include "blas.h"

namespace {

constexpr size_t bytes = 64 << 20, count = bytes / sizeof(float);
constexpr float alpha = 0.5f, beta = 0.25f;

float* allocate() {
  float* memory = nullptr;
  CHECK(cudaMalloc(&memory, bytes));
  return memory;
}

// Frees it, and makes the session return its free memory.
void end(float* memory) {
  cudaMemPool_t pool;
  CHECK(cudaFree(memory));
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  CHECK(cudaMemPoolTrimTo(pool, 0));
}

struct Graph {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;

  template <typename Body>
  Graph(cudaStream_t stream, Body body) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    body();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
  }
  ~Graph() {
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
  }
};

void multiply(cublasHandle_t handle, const float* a, float* c) {
  BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 16, 16, 16, &alpha, a, 16, a, 16, &beta, c, 16));
}

// All of them succeed on an H200.
void useNothing(cublasHandle_t handle, float* a) {
  float dot = 0;
  for (float* behind : {a + count, a + 8 * count}) {
    BLAS(cublasSscal(handle, 0, &alpha, behind, 1));
    BLAS(cublasSdot(handle, 0, behind, 1, a, 1, &dot));
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 0, 16, 16, &alpha, behind, 16, a, 16, &beta, behind, 16));
  }
}

}  // namespace

int main() {
  Blas handle, other;
  cudaStream_t stream, ended;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&ended, cudaStreamNonBlocking));
  float *a = allocate(), *c = allocate();
  useNothing(handle, a);

  // A workspace that is reset when the stream is set; a stream that a call with its own stream argument does not use.
  float* workspace = allocate();
  BLAS(cublasSetWorkspace(handle, workspace, bytes));
  BLAS(cublasSetStream(handle, stream));
  end(workspace);
  BLAS(cublasSetStream(other, ended));
  CHECK(cudaStreamDestroy(ended));
  cublasLtMatrixLayout_t layout;
  cublasLtMatmulDesc_t product;
  BLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 16, 16, 16));
  BLAS(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  auto both = [&] {
    multiply(handle, a, c);
    BLAS(cublasLtMatmul(reinterpret_cast<cublasLtHandle_t>(static_cast<cublasHandle_t>(other)), product, &alpha, a, layout, a, layout, &beta,
                        c, layout, c, layout, nullptr, nullptr, 0, stream));
  };
  Graph used(stream, both);
  CHECK(cudaGraphLaunch(used.executable, stream));

  // Graphs that can no longer be launched, but still exist.
  float* freed = allocate();
  Graph ofFreed(stream, [&] { multiply(handle, a, freed); });
  alignas(4096) static float registered[4096];
  float* mapped = nullptr;
  CHECK(cudaHostRegister(registered, sizeof registered, cudaHostRegisterMapped));
  CHECK(cudaHostGetDevicePointer(&mapped, registered, 0));
  Graph ofRegistered(stream, [&] { multiply(handle, a, mapped); });
  CHECK(cudaStreamSynchronize(stream));
  end(freed);
  CHECK(cudaHostUnregister(registered));

  pausePoint();
  CHECK(cudaGraphLaunch(used.executable, stream));
  Graph again(stream, both);
  CHECK(cudaGraphLaunch(again.executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  useNothing(handle, a);
  BLAS(cublasLtMatmulDescDestroy(product));
  BLAS(cublasLtMatrixLayoutDestroy(layout));
  return verdict("library-ended", true);
}
