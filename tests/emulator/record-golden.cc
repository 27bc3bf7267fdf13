// Records the results of a real GPU for every form of ptx-forms.h: one line `digest form` each, on standard output. With a folder as
// its argument it also writes each form's results there, to inspect differences. Not part of the build:
//   g++ -std=c++20 -O1 -I<cuda>/include tests/emulator/{record-golden,ptx-forms,ptx-wider-forms,ptx-video-forms,ptx-warp-forms}.cc -ldl -o record-golden
// The forms of widerForms() come last: they are kept in ptx-wider-golden.inc.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "ptx-forms.h"

namespace {

template <class F>
F* symbol(void* library, const char* name) {
  auto* found = static_cast<void*>(dlsym(library, name));
  if (!found) std::fprintf(stderr, "no %s in the driver\n", name), std::exit(1);
  return __builtin_bit_cast(F*, found);
}

}  // namespace

int main(int count, char** arguments) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return std::fprintf(stderr, "%s\n", dlerror()), 1;
#define DRIVER(name, actual) auto* name = symbol<decltype(::name)>(driver, actual)
  DRIVER(cuInit, "cuInit");
  DRIVER(cuDeviceGet, "cuDeviceGet");
  DRIVER(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  DRIVER(cuCtxSetCurrent, "cuCtxSetCurrent");
  DRIVER(cuMemAlloc, "cuMemAlloc_v2");
  DRIVER(cuMemcpyHtoD, "cuMemcpyHtoD_v2");
  DRIVER(cuMemcpyDtoH, "cuMemcpyDtoH_v2");
  DRIVER(cuMemsetD8, "cuMemsetD8_v2");
  DRIVER(cuModuleLoadData, "cuModuleLoadData");
  DRIVER(cuModuleGetFunction, "cuModuleGetFunction");
  DRIVER(cuModuleUnload, "cuModuleUnload");
  DRIVER(cuLaunchKernel, "cuLaunchKernel");
  CUdevice device;
  CUcontext context;
  CUdeviceptr in, out;
  constexpr size_t inBytes = size_t{24} * vgpu::emulator::formThreads, outBytes = inBytes / 3;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuMemAlloc(&in, inBytes) || cuMemAlloc(&out, outBytes))
    return std::fprintf(stderr, "no device\n"), 1;
  int number = 0;
  const auto record = [&](const vgpu::emulator::Form& form) {
    const auto inputs = vgpu::emulator::formInputs(form);
    std::vector<uint64_t> results(vgpu::emulator::formThreads);
    CUmodule module;
    CUfunction kernel;
    if (const int error = cuModuleLoadData(&module, vgpu::emulator::formKernel(form).c_str())) {
      std::fprintf(stderr, "error %d for %s\n", error, form.text.c_str());
      ++number;
      return;
    }
    void* parameters[] = {&in, &out};
    if (cuModuleGetFunction(&kernel, module, "k") || cuMemcpyHtoD(in, inputs.data(), inBytes) ||
        cuMemsetD8(out, 0, outBytes) ||
        cuLaunchKernel(kernel, vgpu::emulator::formThreads / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr) ||
        cuMemcpyDtoH(results.data(), out, outBytes))
      std::fprintf(stderr, "cannot run %s\n", form.text.c_str()), std::exit(1);
    cuModuleUnload(module);
    std::printf("%016llx %s\n", static_cast<unsigned long long>(vgpu::emulator::formDigest(results)),
                form.text.c_str());
    if (count > 1) {
      std::ofstream file(std::string(arguments[1]) + "/" + std::to_string(number) + ".bin", std::ios::binary);
      file.write(static_cast<const char*>(static_cast<const void*>(results.data())), outBytes);
    }
    ++number;
  };
  for (const auto& form : vgpu::emulator::allForms()) record(form);
  for (const auto& form : vgpu::emulator::allWarpForms()) {
    const auto inputs = vgpu::emulator::warpFormInputs(form);
    std::vector<uint64_t> results(size_t{32} * 8);
    CUmodule module;
    CUfunction kernel;
    if (const int error = cuModuleLoadData(&module, vgpu::emulator::warpFormKernel(form).c_str())) {
      std::fprintf(stderr, "error %d for %s\n", error, form.body.c_str());
      continue;
    }
    void* parameters[] = {&in, &out};
    if (cuModuleGetFunction(&kernel, module, "k") || cuMemcpyHtoD(in, inputs.data(), inputs.size() * 4) ||
        cuMemsetD8(out, 0, outBytes) || cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr) ||
        cuMemcpyDtoH(results.data(), out, results.size() * 8))
      return std::fprintf(stderr, "cannot run %s\n", form.body.c_str()), 1;
    cuModuleUnload(module);
    std::printf("%016llx %s\n", static_cast<unsigned long long>(vgpu::emulator::formDigest(results)),
                form.body.c_str());
  }
  for (const auto& form : vgpu::emulator::widerForms()) record(form);
  for (const auto& form : vgpu::emulator::scalarVideoForms()) record(form);
}
