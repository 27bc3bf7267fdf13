// Kernels that NVRTC compiles and nvJitLink links at run time for the device's own architecture: to PTX and to machine code, from LTO-IR,
// from PTX, from a file with PTX, from both at once, and from input whose type it must detect.
#include <dlfcn.h>
#include <nvJitLink.h>
#include <nvrtc.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "driver-entry.h"

namespace {

constexpr const char* caller = R"(
extern __device__ int changed(int value);
extern "C" __global__ void change(int* data) { data[threadIdx.x] = changed(data[threadIdx.x]); })";
constexpr const char* callee = "__device__ int changed(int value) { return 3 * value + 1; }";

// Both libraries are opened by name, as frameworks do.
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
void* linker() {
  static void* library = open("libnvJitLink.so.13");
  return library;
}
#define LINKER(name, ...) callOf<decltype(name)>(linker(), #name, __VA_ARGS__)

std::vector<char> compile(const char* source, const std::string& architecture, bool toPtx) {
  static void* compiler = open("libnvrtc.so.13");
  nvrtcProgram program = nullptr;
  size_t bytes = 0;
  const std::string option = "--gpu-architecture=" + architecture;
  const char* options[] = {option.c_str(), toPtx ? "-rdc=true" : "-dlto"};
  NVRTC(nvrtcCreateProgram, &program, source, "part.cu", 0, nullptr, nullptr);
  NVRTC(nvrtcCompileProgram, program, 2, options);
  std::vector<char> code;
  if (toPtx) {
    NVRTC(nvrtcGetPTXSize, program, &bytes);
    code.resize(bytes);
    NVRTC(nvrtcGetPTX, program, code.data());
  } else {
    NVRTC(nvrtcGetLTOIRSize, program, &bytes);
    code.resize(bytes);
    NVRTC(nvrtcGetLTOIR, program, code.data());
  }
  NVRTC(nvrtcDestroyProgram, &program);
  return code;
}

enum class Part { ltoIr, ptx, file, anyLtoIr, anyPtx };
bool isLtoIr(Part part) { return part == Part::ltoIr || part == Part::anyLtoIr; }

void add(nvJitLinkHandle handle, const char* source, Part how, const std::string& architecture) {
  const std::vector<char> part = compile(source, architecture, !isLtoIr(how));
  if (how == Part::file) {
    char path[] = "/tmp/run-time-linker-XXXXXX";
    std::FILE* file = fdopen(mkstemp(path), "w");
    std::fwrite(part.data(), 1, part.size(), file);
    std::fclose(file);
    LINKER(nvJitLinkAddFile, handle, NVJITLINK_INPUT_PTX, path);
    unlink(path);
    return;
  }
  const bool isAny = how == Part::anyLtoIr || how == Part::anyPtx;
  const nvJitLinkInputType type = isAny ? NVJITLINK_INPUT_ANY : isLtoIr(how) ? NVJITLINK_INPUT_LTOIR : NVJITLINK_INPUT_PTX;
  LINKER(nvJitLinkAddData, handle, type, part.data(), part.size(), "part");
}

std::vector<char> linkedPtx(const std::string& architecture) {
  nvJitLinkHandle handle = nullptr;
  const std::string option = "-arch=" + architecture;
  const char* options[] = {option.c_str(), "-lto", "-ptx"};
  LINKER(nvJitLinkCreate, &handle, 3u, options);
  for (const char* source : {caller, callee}) add(handle, source, Part::ltoIr, architecture);
  LINKER(nvJitLinkComplete, handle);
  size_t bytes = 0;
  LINKER(nvJitLinkGetLinkedPtxSize, handle, &bytes);
  std::vector<char> image(bytes + 1);
  LINKER(nvJitLinkGetLinkedPtx, handle, image.data());
  LINKER(nvJitLinkDestroy, &handle);
  return image;
}

std::vector<char> linkedCode(const std::string& architecture, Part first, Part second) {
  nvJitLinkHandle handle = nullptr;
  const std::string option = "-arch=" + architecture;
  const char* options[] = {option.c_str(), "-lto"};
  LINKER(nvJitLinkCreate, &handle, isLtoIr(first) || isLtoIr(second) ? 2u : 1u, options);
  add(handle, caller, first, architecture);
  add(handle, callee, second, architecture);
  LINKER(nvJitLinkComplete, handle);
  size_t bytes = 0;
  LINKER(nvJitLinkGetLinkedCubinSize, handle, &bytes);
  std::vector<char> image(bytes);
  LINKER(nvJitLinkGetLinkedCubin, handle, image.data());
  LINKER(nvJitLinkDestroy, &handle);
  return image;
}

// The linker refuses an undefined symbol, and names it in its log.
bool refusesWhatIsMissing(const std::string& architecture) {
  nvJitLinkHandle handle = nullptr;
  const std::string option = "-arch=" + architecture;
  const char* options[] = {option.c_str()};
  LINKER(nvJitLinkCreate, &handle, 1u, options);
  add(handle, caller, Part::ptx, architecture);
  auto* complete = reinterpret_cast<decltype(&nvJitLinkComplete)>(dlsym(linker(), "nvJitLinkComplete"));
  bool ok = EXPECT(complete(handle) != NVJITLINK_SUCCESS);
  size_t bytes = 0;
  LINKER(nvJitLinkGetErrorLogSize, handle, &bytes);
  std::string log(bytes, ' ');
  LINKER(nvJitLinkGetErrorLog, handle, log.data());
  ok &= EXPECT(log.find("changed") != std::string::npos);
  LINKER(nvJitLinkDestroy, &handle);
  return ok & EXPECT(handle == nullptr);
}

CUmodule load(const std::vector<char>& image) {
  CUmodule module = nullptr;
  CALL(cuModuleLoadData, &module, image.data());
  return module;
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
  std::vector<CUmodule> modules = {load(linkedPtx(architecture))};
  constexpr std::pair<Part, Part> parts[] = {{Part::ltoIr, Part::ltoIr}, {Part::ptx, Part::ptx},       {Part::ptx, Part::file},
                                             {Part::ltoIr, Part::ptx},   {Part::anyPtx, Part::anyPtx}, {Part::anyLtoIr, Part::anyLtoIr}};
  for (auto [first, second] : parts) modules.push_back(load(linkedCode(architecture, first, second)));
  bool ok = refusesWhatIsMissing(architecture);
  for (CUmodule module : modules) ok &= run(module);
  pausePoint();
  for (CUmodule module : modules) ok &= run(module);
  return verdict("run-time-linker", ok);
}
