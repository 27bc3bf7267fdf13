// Invalid launches: CUDA returns the error from the launching call itself. No other call and no other thread gets it, and earlier launches
// continue.
#include <cooperative_groups.h>

#include <thread>

#include "driver-entry.h"

namespace {

__global__ void addAcrossGrid(int* sums, int* total) {
  extern __shared__ int scratch[];
  if (threadIdx.x == 0) scratch[0] = 1;
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = scratch[0];
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0 && threadIdx.x == 0)
    for (unsigned i = 0; i < gridDim.x; ++i) *total += sums[i];
}

__global__ void __launch_bounds__(128) few(int* value) { *value = 1; }
__global__ void add(int* value, int more) { atomicAdd(value, more); }

constexpr int threads = 256;

cudaError_t launchCooperative(dim3 grid, size_t shared, int* sums, int* total, cudaStream_t stream = nullptr) {
  void* arguments[] = {&sums, &total};
  return cudaLaunchCooperativeKernel(addAcrossGrid, grid, dim3(threads), arguments, shared, stream);
}

// A refusal leaves no error behind, neither for this thread nor for one that waits.
bool isQuiet() {
  cudaError_t elsewhere = cudaErrorUnknown;
  std::thread waiter([&] { elsewhere = cudaDeviceSynchronize(); });
  waiter.join();
  return EXPECT_ERROR(elsewhere, cudaSuccess) & EXPECT_ERROR(cudaDeviceSynchronize(), cudaSuccess) &
         EXPECT_ERROR(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
}

bool refused(cudaError_t got, cudaError_t expected) {
  const bool ok = EXPECT_ERROR(got, expected) & EXPECT_ERROR(cudaGetLastError(), expected);
  return ok & isQuiet();
}

// Exactly as many blocks as the device holds at once: with and without shared memory that reduces their number.
bool cooperativeTooLarge(int* sums) {
  bool ok = true;
  int processors = 0;
  CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  for (size_t shared : {size_t(4), size_t(40) << 10}) {
    int resident = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, addAcrossGrid, threads, shared));
    const unsigned most = unsigned(resident) * processors;
    DeviceArray<int> total(std::vector<int>{0});
    ok &= refused(launchCooperative(most + 1, shared, sums, total), cudaErrorCooperativeLaunchTooLarge) &
          refused(launchCooperative(dim3(65535, 65535, 65535), shared, sums, total), cudaErrorCooperativeLaunchTooLarge);
    if (shared > 4) CHECK(launchCooperative(most, shared, sums, total));
    ok &= isQuiet() & same("sum over the grid", total.download(), {shared > 4 ? int(most) : 0});
  }
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = 1 << 20;
  config.blockDim = threads;
  config.dynamicSmemBytes = 4;
  config.attrs = &cooperative;
  config.numAttrs = 1;
  void* arguments[] = {&sums, &sums};
  ok &= refused(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(addAcrossGrid), arguments),
                cudaErrorCooperativeLaunchTooLarge);
  return ok & refused(launchCooperative(1, size_t(1) << 20, sums, sums), cudaErrorCooperativeLaunchTooLarge);
}

template <typename... Arguments>
cudaError_t tryLaunch(void (*kernel)(Arguments...), dim3 grid, dim3 block, size_t shared, Arguments... arguments) {
  void* pointers[] = {&arguments...};
  return cudaLaunchKernel(kernel, grid, block, pointers, shared, nullptr);
}

bool tooLarge(int* value) {
  int optIn = 0;
  CHECK(cudaDeviceGetAttribute(&optIn, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  bool ok = refused(tryLaunch(few, 1, 129, 0, value), cudaErrorInvalidValue) &
            refused(tryLaunch(few, 1, 1025, 0, value), cudaErrorInvalidValue) &
            refused(tryLaunch(few, dim3(1, 65536), 1, 0, value), cudaErrorInvalidValue) &
            refused(tryLaunch(few, 1, 1, (48u << 10) + 1, value), cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(few, cudaFuncAttributeMaxDynamicSharedMemorySize, optIn));
  CHECK(tryLaunch(few, 1, 128, size_t(optIn), value));
  ok &= isQuiet() & refused(tryLaunch(few, 1, 128, size_t(optIn) + 1, value), cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(few, cudaFuncAttributeMaxDynamicSharedMemorySize, 48 << 10));
  return ok;
}

// Further checks of the driver's own launches.
bool driverLaunches(int* value) {
  cudaFunction_t function;
  CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(add)));
  const auto launch = DRIVER(cuLaunchKernel);
  struct {
    int* value;
    int more, behind;
  } block{value, 5, 7};
  size_t bytes = 12, tooMany = 16;
  void* parameters[] = {&block.value, &block.more};
  void* packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  void* long_[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &tooMany, CU_LAUNCH_PARAM_END};
  auto result = [&](CUfunction f, unsigned grid, void** pointers, void** extra) {
    return launch(f, grid, 1, 1, 1, 1, 1, 0, nullptr, pointers, extra);
  };
  bool ok = EXPECT(result(nullptr, 1, parameters, nullptr) == CUDA_ERROR_INVALID_HANDLE) &
            EXPECT(result(function, 0, parameters, nullptr) == CUDA_ERROR_INVALID_VALUE) &
            EXPECT(result(function, 1, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE) &
            EXPECT(result(function, 1, parameters, packed) == CUDA_ERROR_INVALID_VALUE) &
            EXPECT(result(function, 1, nullptr, long_) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  check(result(function, 1, nullptr, packed), "cuLaunchKernel");
  return ok & isQuiet();
}

}  // namespace

int main() {
  DeviceArray<int> value(std::vector<int>{0}), sums(std::vector<int>(1 << 16, 0));
  bool ok = true;
  for (int round = 0; round < 2; ++round) {
    add<<<1, 1>>>(value, 10);
    CHECK(cudaGetLastError());
    ok &= cooperativeTooLarge(sums) & tooLarge(sums) & driverLaunches(value);
    if (round == 0) pausePoint();
  }
  return verdict("launch-refused", ok & same("value", value.download(), {30}));
}
