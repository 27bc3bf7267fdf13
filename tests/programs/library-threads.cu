// A handle whose stream is cudaStreamPerThread: each thread's work goes into its own stream, with the workspace that was set, also after
// the thread that set the stream has ended. And a library's results for one GPU are not reused for another. The recording library shows the
// calls that it gets (tests/libraries/streams-followed).
#include "blas.h"

#include <thread>

namespace {

constexpr int size = 16;
const float two = 2;

template <typename Body>
void inThread(Body body) {
  std::thread(body).join();
}

void scale(cublasHandle_t handle, float* x) { BLAS(cublasSscal(handle, size, &two, x, 1)); }

// Captures a graph in this thread's stream that doubles the vector, and launches it.
void scaleInGraph(cublasHandle_t handle, float* x) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal));
  scale(handle, x);
  CHECK(cudaStreamEndCapture(cudaStreamPerThread, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 2; ++i) CHECK(cudaGraphLaunch(executable, cudaStreamPerThread));
  CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
}

void askOf(int device) {
  CHECK(cudaSetDevice(device));
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t layout;
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  BLAS(cublasLtCreate(&handle));
  BLAS(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  BLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, size, size, size));
  BLAS(cublasLtMatmulPreferenceCreate(&preference));
  for (int again = 0; again < 2; ++again)
    BLAS(cublasLtMatmulAlgoGetHeuristic(handle, product, layout, layout, layout, layout, preference, 1, &found, &count));
  BLAS(cublasLtMatmulPreferenceDestroy(preference));
  BLAS(cublasLtMatrixLayoutDestroy(layout));
  BLAS(cublasLtMatmulDescDestroy(product));
  BLAS(cublasLtDestroy(handle));
}

}  // namespace

int main() {
  Blas handle;
  DeviceArray<float> x(std::vector<float>(size, 1));
  DeviceArray<char> workspace(1 << 20);
  inThread([&] {
    BLAS(cublasSetStream(handle, cudaStreamPerThread));
    BLAS(cublasSetWorkspace(handle, workspace, 1 << 20));
    scale(handle, x);
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  });
  inThread([&] {
    for (int again = 0; again < 2; ++again) scale(handle, x);
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  });
  inThread([&] { scaleInGraph(handle, x); });
  pausePoint();
  scale(handle, x);
  CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  inThread([&] { scaleInGraph(handle, x); });

  cudaStream_t stream;
  BLAS(cublasGetStream(handle, &stream));
  bool ok = EXPECT(stream == cudaStreamPerThread);
  const bool computes = std::getenv("VGPU_LIBRARIES") == nullptr;  // the recording library does not change the data
  ok &= EXPECT(x.download()[size - 1] == (computes ? 256 : 1));

  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  for (int device = 0; device < devices; ++device) askOf(device);
  return verdict("library-threads", ok);
}
