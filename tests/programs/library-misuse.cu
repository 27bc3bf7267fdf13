// Library objects that a call cannot take: destroyed, of another kind, or made while another GPU was current. Such a call is refused with
// the library's own status, and the next call works; descriptors belong to the host, so those made on another GPU are valid. Natively such
// a call may crash, so this runs in a session only.
#include "blas.h"
#include "in-session.h"

namespace {

bool isRight = true;

void expect(cublasStatus_t wanted, cublasStatus_t got, const char* call) {
  if (got == wanted) return;
  std::printf("%s: %s, expected %s\n", call, cublasGetStatusName(got), cublasGetStatusName(wanted));
  isRight = false;
}
#define ANSWERS(status, call) expect(CUBLAS_STATUS_##status, (call), #call)

template <typename To, typename From>
To as(From handle) {
  return reinterpret_cast<To>(handle);
}

// Objects made on one GPU.
struct Objects {
  cublasHandle_t blas = nullptr;
  cublasLtHandle_t lt = nullptr;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtEmulationDesc_t emulation = nullptr;
  cudaStream_t stream = nullptr;
  float* data = nullptr;
  int device;

  explicit Objects(int device) : device(device) {
    CHECK(cudaSetDevice(device));
    cublasStatus_t status = cublasCreate(&blas);
    if (status == CUBLAS_STATUS_NOT_INITIALIZED) std::exit(notHere);
    BLAS(status);
    BLAS(cublasLtCreate(&lt));
    BLAS(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    BLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 16, 16, 16));
    BLAS(cublasLtMatmulPreferenceCreate(&preference));
    BLAS(cublasLtEmulationDescCreate(&emulation));
    cublasOperation_t transposed = CUBLAS_OP_T;
    BLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&data, 4096));
  }

  // A product on this GPU, with descriptors that may have been made on another.
  cublasStatus_t multiply(cublasLtMatmulDesc_t by, cublasLtMatrixLayout_t of) const {
    const float alpha = 1, beta = 0;
    return cublasLtMatmul(lt, by, &alpha, data, of, data, layout, &beta, data, layout, data, layout, nullptr, nullptr, 0, stream);
  }
  cublasStatus_t scale(cublasHandle_t handle) const {
    const float two = 2;
    return cublasSscal(handle, 16, &two, data, 1);
  }
  // Whether the worker still serves the session.
  void works() const {
    CHECK(cudaSetDevice(device));
    ANSWERS(SUCCESS, scale(blas));
    ANSWERS(SUCCESS, multiply(product, layout));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaDeviceSynchronize());
  }
};

cublasStatus_t hold(cublasLtMatmulDesc_t product, const void* emulation) {
  return cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, &emulation, sizeof emulation);
}

void useOtherKinds(const Objects& here, const Objects& there) {
  CHECK(cudaSetDevice(here.device));
  for (auto* of : {&here, &there}) {
    ANSWERS(NOT_INITIALIZED, here.scale(as<cublasHandle_t>(of->lt)));
    ANSWERS(NOT_INITIALIZED, here.scale(as<cublasHandle_t>(of->stream)));
    ANSWERS(NOT_INITIALIZED, cublasDestroy(as<cublasHandle_t>(of->lt)));
    ANSWERS(NOT_INITIALIZED, cublasLtDestroy(as<cublasLtHandle_t>(of->blas)));
    ANSWERS(INVALID_VALUE, here.multiply(as<cublasLtMatmulDesc_t>(of->layout), here.layout));
    ANSWERS(INVALID_VALUE, here.multiply(here.product, as<cublasLtMatrixLayout_t>(of->preference)));
    ANSWERS(INVALID_VALUE, cublasLtMatrixLayoutDestroy(as<cublasLtMatrixLayout_t>(of->product)));
    ANSWERS(INVALID_VALUE, hold(here.product, of->preference));
    ANSWERS(SUCCESS, hold(here.product, of->emulation));
    ANSWERS(SUCCESS, hold(here.product, nullptr));
    here.works();
  }
}

// Also in a graph: the call is repeated when the graph is made again.
void useThoseOfAnother(const Objects& here, const Objects& there) {
  CHECK(cudaSetDevice(here.device));
  ANSWERS(SUCCESS, here.multiply(there.product, there.layout));
  CHECK(cudaStreamBeginCapture(here.stream, cudaStreamCaptureModeRelaxed));
  ANSWERS(SUCCESS, here.multiply(there.product, there.layout));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(here.stream, &graph));
  cudaGraphExec_t executable = nullptr;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, here.stream));
  CHECK(cudaStreamSynchronize(here.stream));
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  // A stream of another GPU is invalid for this handle.
  ANSWERS(SUCCESS, cublasSetStream(here.blas, there.stream));
  ANSWERS(INVALID_VALUE, here.scale(here.blas));
  ANSWERS(SUCCESS, cublasSetStream(here.blas, nullptr));
  here.works();
}

void useEnded(const Objects& here, int device) {
  Objects ended(device);
  CHECK(cudaFree(ended.data));
  CHECK(cudaStreamDestroy(ended.stream));
  BLAS(cublasDestroy(ended.blas));
  BLAS(cublasLtMatmulDescDestroy(ended.product));
  BLAS(cublasLtMatrixLayoutDestroy(ended.layout));
  BLAS(cublasLtMatmulPreferenceDestroy(ended.preference));
  BLAS(cublasLtEmulationDescDestroy(ended.emulation));
  ANSWERS(NOT_INITIALIZED, here.scale(ended.blas));
  ANSWERS(NOT_INITIALIZED, cublasSetMathMode(ended.blas, CUBLAS_DEFAULT_MATH));
  ANSWERS(NOT_INITIALIZED, cublasDestroy(ended.blas));
  ANSWERS(INVALID_VALUE, here.multiply(ended.product, here.layout));
  ANSWERS(INVALID_VALUE, here.multiply(here.product, ended.layout));
  ANSWERS(INVALID_VALUE, cublasLtMatmulDescDestroy(ended.product));
  ANSWERS(INVALID_VALUE, hold(here.product, ended.emulation));
  BLAS(cublasLtDestroy(ended.lt));
  ANSWERS(NOT_INITIALIZED, ended.multiply(here.product, here.layout));
  here.works();
}

// The statuses of cuBLAS 13.1, on an H200 where a GPU is needed.
void answerAsNatively(float* data) {
  ANSWERS(NOT_INITIALIZED, cublasDestroy(nullptr));
  ANSWERS(SUCCESS, cublasLtMatmulDescDestroy(nullptr));
  ANSWERS(SUCCESS, cublasLtMatrixLayoutDestroy(nullptr));
  ANSWERS(SUCCESS, cublasLtMatmulPreferenceDestroy(nullptr));
  ANSWERS(SUCCESS, cublasLtMatrixTransformDescDestroy(nullptr));
  ANSWERS(SUCCESS, cublasLtEmulationDescDestroy(nullptr));
  float host[4] = {};
  ANSWERS(SUCCESS, cublasSetVector(0, 4, host, 1, data, 1));
  ANSWERS(INVALID_VALUE, cublasSetVector(0, 4, host, 0, data, 1));
  ANSWERS(INVALID_VALUE, cublasSetVector(0, 0, host, 1, data, 1));
  ANSWERS(INVALID_VALUE, cublasSetVector(4, 4, host, 1, data, -1));
  ANSWERS(INVALID_VALUE, cublasSetMatrix(0, 2, 4, host, 0, data, 2));
  ANSWERS(INVALID_VALUE, cublasSetMatrix(-1, 2, 4, host, 2, data, 2));
  ANSWERS(MAPPING_ERROR, cublasSetMatrix(2, 2, 4, host, 1, data, 2));
  ANSWERS(MAPPING_ERROR, cublasSetMatrix(2, 2, 4, nullptr, 2, data, 2));
  ANSWERS(MAPPING_ERROR, cublasSetVector(4, 4, host, 1, as<void*>(uintptr_t{16}), 1));
  auto says = [](int status, const char* text) {
    if (std::strcmp(cublasGetStatusString(static_cast<cublasStatus_t>(status)), text) == 0) return;
    std::printf("%d is not: %s\n", status, text);
    isRight = false;
  };
  says(CUBLAS_STATUS_ARCH_MISMATCH, "the function requires an architectural feature absent from the device");
  says(CUBLAS_STATUS_EXECUTION_FAILED, "the function failed to launch on the GPU");
  says(CUBLAS_STATUS_NOT_SUPPORTED, "the requested functionality is not supported");
  says(2, "unrecognized status");
}

// A layout in the program's own memory, which is overwritten and then initialized again.
void makeAgain(const Objects& here) {
  cublasLtMatrixLayoutOpaque_t own, before;
  BLAS(cublasLtMatrixLayoutInit(&own, CUDA_R_32F, 16, 16, 16));
  before = own;
  ANSWERS(SUCCESS, here.multiply(here.product, &own));
  std::memset(&own, 0xab, sizeof own);
  BLAS(cublasLtMatrixLayoutInit(&own, CUDA_R_32F, 16, 16, 16));
  ANSWERS(SUCCESS, here.multiply(here.product, &own));
  ANSWERS(INVALID_VALUE, here.multiply(here.product, &before));  // the session no longer knows it
}

}  // namespace

int main() {
  if (!inSession) return notHere;
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  Objects first(0), second(count - 1);
  auto all = [&] {
    useOtherKinds(first, second);
    useOtherKinds(second, first);
    useThoseOfAnother(first, second);
    useThoseOfAnother(second, first);
    useEnded(first, second.device);
    useEnded(second, first.device);
  };
  ANSWERS(NOT_INITIALIZED, first.scale(nullptr));
  answerAsNatively(first.data);
  CHECK(cudaSetDevice(first.device));
  makeAgain(first);
  int version = 0;
  ANSWERS(SUCCESS, cublasGetVersion(nullptr, &version));  // the library answers queries, with or without a handle
  all();
  pausePoint();
  all();
  if (count > 1) {
    CHECK(cudaSetDevice(second.device));
    CHECK(cudaDeviceReset());
    ANSWERS(NOT_INITIALIZED, first.scale(second.blas));
    ANSWERS(INVALID_VALUE, first.multiply(second.product, first.layout));
  }
  first.works();
  return verdict("library-misuse", isRight);
}
