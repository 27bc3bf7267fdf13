// A kernel that NVRTC compiles at run time for the device's own architecture: to machine code, and to PTX.
#include <dlfcn.h>
#include <nvrtc.h>

#include <string>

#include "driver-entry.h"

namespace {

constexpr const char* source = "extern \"C\" __global__ void twice(int* data) { data[threadIdx.x] *= 2; }";

// NVRTC is opened by name, as frameworks do.
template <typename Function>
Function* entry(const char* name) {
  static void* library = dlopen("libnvrtc.so.13", RTLD_NOW);
  if (library == nullptr) std::exit(notHere);
  return reinterpret_cast<Function*>(dlsym(library, name));
}
#define NVRTC(name, ...) expectDone(entry<decltype(name)>(#name)(__VA_ARGS__), #name)

void expectDone(nvrtcResult result, const char* what) {
  if (result == NVRTC_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", what, result);
  std::exit(1);
}

struct Compiled {
  std::vector<char> machineCode, ptx;
};

Compiled compileFor(const std::string& architecture) {
  nvrtcProgram program = nullptr;
  Compiled compiled;
  size_t bytes = 0;
  std::string option = "--gpu-architecture=" + architecture;
  const char* options[] = {option.c_str()};
  NVRTC(nvrtcCreateProgram, &program, source, "twice.cu", 0, nullptr, nullptr);
  NVRTC(nvrtcCompileProgram, program, 1, options);
  NVRTC(nvrtcGetCUBINSize, program, &bytes);
  compiled.machineCode.resize(bytes);
  NVRTC(nvrtcGetCUBIN, program, compiled.machineCode.data());
  NVRTC(nvrtcGetPTXSize, program, &bytes);
  compiled.ptx.resize(bytes);
  NVRTC(nvrtcGetPTX, program, compiled.ptx.data());
  NVRTC(nvrtcDestroyProgram, &program);
  return compiled;
}

CUfunction load(const std::vector<char>& image) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CALL(cuModuleLoadData, &module, image.data());
  CALL(cuModuleGetFunction, &function, module, "twice");
  return function;
}

bool run(CUfunction function) {
  DeviceArray<int> data(std::vector<int>{1, 2, 3, 4});
  int* address = data;
  void* parameters[] = {&address};
  CALL(cuLaunchKernel, function, 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr);
  return same("doubled", data.download(), {2, 4, 6, 8});
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  const std::string number = std::to_string(properties.major * 10 + properties.minor);
  const Compiled own = compileFor("sm_" + number);
  CUfunction first = load(own.machineCode), second = load(own.ptx);
  bool ok = run(first) & run(second);
  pausePoint();
  return verdict("run-time-compiler", ok & run(first) & run(second));
}
