// The driver API, called as by a program that is linked with libcuda: a module from PTX text, its kernel and variable, memory, a stream and
// events.
#include "program.h"
#include "random-numbers.h"

#include <cuda.h>

#include <cstring>

#define CHECK_DRIVER(call) checkDriverCall((call), #call, __LINE__)

void checkDriverCall(CUresult result, const char* call, int line) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "an error without a name";
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "driver-api.cu:%d: %s: %s\n", line, call, name);
  std::exit(1);
}

bool expectResult(CUresult got, CUresult expected) { return EXPECT(got == expected); }

// values[i] = values[i] * factor + bias, for i < count
const char* const ptx = R"(
.version 7.5
.target sm_75
.address_size 64

.visible .global .align 4 .s32 bias = 3;

.visible .entry scaleAndShift(.param .u64 values, .param .u32 count, .param .s32 factor)
{
  .reg .pred %outside;
  .reg .b32 %index, %block, %width, %thread, %limit, %value, %scale, %shift;
  .reg .b64 %base, %offset;
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.s32 %index, %block, %width, %thread;
  ld.param.u32 %limit, [count];
  setp.ge.u32 %outside, %index, %limit;
  @%outside bra done;
  ld.param.u64 %base, [values];
  cvta.to.global.u64 %base, %base;
  mul.wide.u32 %offset, %index, 4;
  add.s64 %base, %base, %offset;
  ld.global.s32 %value, [%base];
  ld.param.s32 %scale, [factor];
  ld.global.s32 %shift, [bias];
  mad.lo.s32 %value, %value, %scale, %shift;
  st.global.s32 [%base], %value;
done:
  ret;
}
)";

class Scaler {
 public:
  Scaler() {
    CHECK_DRIVER(cuModuleLoadData(&module, ptx));
    CHECK_DRIVER(cuModuleGetFunction(&function, module, "scaleAndShift"));
    size_t bytes = 0;
    CHECK_DRIVER(cuModuleGetGlobal(&bias, &bytes, module, "bias"));
    if (!EXPECT(bytes == sizeof(int))) std::exit(1);
  }
  ~Scaler() { CHECK_DRIVER(cuModuleUnload(module)); }

  void setBias(int value, CUstream stream) { CHECK_DRIVER(cuMemcpyHtoDAsync(bias, &value, sizeof value, stream)); }

  void launch(CUdeviceptr values, unsigned count, int factor, CUstream stream) {
    void* parameters[] = {&values, &count, &factor};
    CHECK_DRIVER(cuLaunchKernel(function, blocksFor(count, 128), 1, 1, 128, 1, 1, 0, stream, parameters, nullptr));
  }

  // The same with the parameters as one manually packed block.
  void launchPacked(CUdeviceptr values, unsigned count, int factor, CUstream stream) {
    struct {
      CUdeviceptr values;
      unsigned count;
      int factor;
    } block{values, count, factor};
    size_t bytes = sizeof block;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CHECK_DRIVER(cuLaunchKernel(function, blocksFor(count, 128), 1, 1, 128, 1, 1, 0, stream, nullptr, extra));
  }

  bool refusesUnknownNames() {
    CUfunction none;
    CUdeviceptr nowhere;
    return expectResult(cuModuleGetFunction(&none, module, "nothing"), CUDA_ERROR_NOT_FOUND) &
           expectResult(cuModuleGetGlobal(&nowhere, nullptr, module, "nothing"), CUDA_ERROR_NOT_FOUND);
  }

 private:
  CUmodule module;
  CUfunction function;
  CUdeviceptr bias;
};

int main() {
  const unsigned count = 5000;
  CUdevice device;
  CUcontext context;
  CUdeviceptr unused;
  bool ok = expectResult(cuMemAlloc(&unused, 16), CUDA_ERROR_NOT_INITIALIZED);
  CHECK_DRIVER(cuInit(0));
  ok &= expectResult(cuDeviceGet(&device, 999), CUDA_ERROR_INVALID_DEVICE);
  CHECK_DRIVER(cuDeviceGet(&device, 0));
  ok &= expectResult(cuMemAlloc(&unused, 16), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  CHECK_DRIVER(cuCtxSetCurrent(context));
  {
    Scaler scaler;
    CUstream stream;
    CUevent done;
    CUdeviceptr values;
    CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK_DRIVER(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
    CHECK_DRIVER(cuMemAlloc(&values, count * sizeof(int)));
    const auto input = randomInts(count, -1000, 1000, 1);
    // In the same stream: a copy from pageable memory may return before its bytes have arrived, and this stream does not wait for the null
    // stream.
    CHECK_DRIVER(cuMemcpyHtoDAsync(values, input.data(), count * sizeof(int), stream));
    scaler.launch(values, count, 2, stream);
    pausePoint();
    CHECK_DRIVER(cuStreamSynchronize(stream));
    scaler.setBias(-4, stream);
    scaler.launchPacked(values, count, 5, stream);
    CHECK_DRIVER(cuEventRecord(done, stream));
    CHECK_DRIVER(cuEventSynchronize(done));

    std::vector<int> output(count), expected(input);
    for (int& value : expected) value = (value * 2 + 3) * 5 - 4;
    CHECK_DRIVER(cuMemcpyDtoH(output.data(), values, count * sizeof(int)));
    ok &= same("values", output, expected) & scaler.refusesUnknownNames();
    CHECK_DRIVER(cuMemFree(values));
    CHECK_DRIVER(cuEventDestroy(done));
    CHECK_DRIVER(cuStreamDestroy(stream));
  }
  CHECK_DRIVER(cuDevicePrimaryCtxRelease(device));
  return verdict("driver-api", ok);
}
