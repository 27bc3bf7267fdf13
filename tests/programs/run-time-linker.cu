// Kernels that NVRTC compiles and nvJitLink links while the program runs: to PTX, which every device takes, and to machine code
// of the device's architecture, which an emulated device refuses by name.
#include <dlfcn.h>
#include <nvJitLink.h>
#include <nvrtc.h>

#include "driver-entry.h"

namespace {

constexpr const char* caller = R"(
extern __device__ int changed(int value);
extern "C" __global__ void change(int* data) { data[threadIdx.x] = changed(data[threadIdx.x]); })";
constexpr const char* callee = "__device__ int changed(int value) { return 3 * value + 1; }";

// Both are opened by their names, as frameworks do.
void* open(const char* name) {
  void* library = dlopen(name, RTLD_NOW);
  if (library == nullptr) std::exit(notHere);
  return library;
}

template <typename Function, typename... Arguments>
void callOf(void* library, const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) std::fprintf(stderr, "no %s\n", name), std::exit(1);
  if (const int result = function(arguments...)) std::fprintf(stderr, "%s: error %d\n", name, result), std::exit(1);
}
#define NVRTC(name, ...) callOf<decltype(name)>(compiler, #name, __VA_ARGS__)
#define LINKER(name, ...) callOf<decltype(name)>(linker, #name, __VA_ARGS__)

std::vector<char> compile(const char* source, const std::string& architecture) {
  static void* compiler = open("libnvrtc.so.13");
  nvrtcProgram program = nullptr;
  size_t bytes = 0;
  const std::string option = "--gpu-architecture=" + architecture;
  const char* options[] = {option.c_str(), "-dlto"};
  NVRTC(nvrtcCreateProgram, &program, source, "part.cu", 0, nullptr, nullptr);
  NVRTC(nvrtcCompileProgram, program, 2, options);
  NVRTC(nvrtcGetLTOIRSize, program, &bytes);
  std::vector<char> code(bytes);
  NVRTC(nvrtcGetLTOIR, program, code.data());
  NVRTC(nvrtcDestroyProgram, &program);
  return code;
}

std::vector<char> link(const std::string& architecture, bool toPtx) {
  static void* linker = open("libnvJitLink.so.13");
  nvJitLinkHandle handle = nullptr;
  const std::string option = "-arch=" + architecture;
  const char* options[] = {option.c_str(), "-lto", "-ptx"};
  LINKER(nvJitLinkCreate, &handle, toPtx ? 3u : 2u, options);
  for (const char* source : {caller, callee}) {
    const std::vector<char> part = compile(source, architecture);
    LINKER(nvJitLinkAddData, handle, NVJITLINK_INPUT_LTOIR, part.data(), part.size(), "part");
  }
  LINKER(nvJitLinkComplete, handle);
  size_t bytes = 0;
  std::vector<char> image;
  if (toPtx) {
    LINKER(nvJitLinkGetLinkedPtxSize, handle, &bytes);
    image.resize(bytes + 1);
    LINKER(nvJitLinkGetLinkedPtx, handle, image.data());
  } else {
    LINKER(nvJitLinkGetLinkedCubinSize, handle, &bytes);
    image.resize(bytes);
    LINKER(nvJitLinkGetLinkedCubin, handle, image.data());
  }
  LINKER(nvJitLinkDestroy, &handle);
  return image;
}

bool run(CUmodule module) {
  CUfunction function = nullptr;
  CALL(cuModuleGetFunction, &function, module, "change");
  DeviceArray<int> data(std::vector<int>{1, 2, 3, 4});
  int* address = data;
  void* parameters[] = {&address};
  CALL(cuLaunchKernel, function, 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr);
  return same("changed", data.download(), {4, 7, 10, 13});
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  const std::string architecture = "sm_" + std::to_string(device.major * 10 + device.minor);
  CUmodule ptx = nullptr, machineCode = nullptr;
  CALL(cuModuleLoadData, &ptx, link(architecture, true).data());
  const CUresult loaded = DRIVER(cuModuleLoadData)(&machineCode, link(architecture, false).data());
  bool ok = EXPECT(loaded == CUDA_SUCCESS || loaded == CUDA_ERROR_NO_BINARY_FOR_GPU) & run(ptx);
  if (loaded == CUDA_SUCCESS) ok &= run(machineCode);
  pausePoint();
  ok &= run(ptx);
  if (loaded == CUDA_SUCCESS) ok &= run(machineCode);
  return verdict("run-time-linker", ok);
}
