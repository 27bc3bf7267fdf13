// Code that the driver's entries read from files, managed variables of a library, range attributes, stream callbacks, error names, and
// profiler calls.
#include "exported-entry.h"

#include <cudaProfiler.h>

#include <cstring>
#include <fstream>

namespace {

const char* const ptx = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 shared;
.visible .entry write(.param .u32 value) {
  .reg .u32 %r; .reg .u64 %d;
  ld.param.u32 %r, [value];
  mov.u64 %d, shared;
  st.global.u32 [%d], %r;
  ret;
}
)";

struct CodeFile {
  std::string path = "/tmp/vgpu-driver-files-" + std::to_string(getpid()) + ".ptx";
  CodeFile() { std::ofstream(path) << ptx; }
  ~CodeFile() { unlink(path.c_str()); }
};

bool writes(CUfunction function, CUdeviceptr shared, unsigned value) {
  void* parameters[] = {&value};
  return WORKS(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) && WORKS(cuCtxSynchronize) &&
         EXPECT(*reinterpret_cast<unsigned*>(shared) == value);
}

bool modulesAreRead(const CodeFile& file) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr shared = 0;
  size_t bytes = 0;
  bool ok = WORKS(cuModuleLoad, &module, file.path.c_str()) && WORKS(cuModuleGetFunction, &function, module, "write") &&
            WORKS(cuModuleGetGlobal_v2, &shared, &bytes, module, "shared") && EXPECT(bytes == 4) && writes(function, shared, 7);
  ok &= WORKS(cuModuleUnload, module) && GIVES(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad, &module, "/nowhere/at/all");
  return ok && WORKS(cuModuleLoadFatBinary, &module, ptx) && WORKS(cuModuleUnload, module);
}

struct Library {
  CUlibrary library = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr shared = 0;
};

bool librariesAreRead(const CodeFile& file, Library& made) {
  CUkernel kernel = nullptr;
  size_t bytes = 0;
  return WORKS(cuLibraryLoadFromFile, &made.library, file.path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) &&
         WORKS(cuLibraryGetKernel, &kernel, made.library, "write") && WORKS(cuKernelGetFunction, &made.function, kernel) &&
         WORKS(cuLibraryGetManaged, &made.shared, &bytes, made.library, "shared") && EXPECT(bytes == 4) &&
         GIVES(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged, &made.shared, &bytes, made.library, "nothing");
}

bool rangesAreDescribed() {
  CUdeviceptr memory = 0;
  constexpr size_t bytes = 1 << 16;
  int isReadMostly = -1, preferred = -1;
  void* data[] = {&isReadMostly, &preferred};
  size_t sizes[] = {sizeof(int), sizeof(int)};
  CUmem_range_attribute attributes[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
  bool ok = WORKS(cuMemAllocManaged, &memory, bytes, CU_MEM_ATTACH_GLOBAL) &&
            WORKS(cuMemAdvise, memory, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
  ok &= WORKS(cuMemRangeGetAttributes, data, sizes, attributes, 2, memory, bytes) && EXPECT(isReadMostly == 1) &&
        EXPECT(preferred == CU_DEVICE_INVALID);
  sizes[1] = 1;
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes, data, sizes, attributes, 2, memory, bytes);
  return ok & WORKS(cuMemFree_v2, memory);
}

struct Called {
  CUstream stream;
  CUresult status;
  int times;
};

bool callbacksRun() {
  CUstream stream = nullptr;
  Called called{nullptr, CUDA_ERROR_UNKNOWN, 0};
  auto callback = [](CUstream stream, CUresult status, void* data) {
    *static_cast<Called*>(data) = {stream, status, static_cast<Called*>(data)->times + 1};
  };
  bool ok = WORKS(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < 3; ++i) ok &= WORKS(cuStreamAddCallback, stream, callback, &called, 0);
  ok &= WORKS(cuStreamSynchronize, stream) && EXPECT(called.times == 3) && EXPECT(called.stream == stream) &&
        EXPECT(called.status == CUDA_SUCCESS);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback, stream, nullptr, &called, 0) &&
        GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback, stream, callback, &called, 1);
  return ok & WORKS(cuStreamDestroy_v2, stream);
}

bool errorsHaveNames() {
  const char *name = nullptr, *text = nullptr;
  bool ok = WORKS(cuGetErrorName, CUDA_ERROR_NOT_READY, &name) && WORKS(cuGetErrorString, CUDA_ERROR_NOT_READY, &text);
  ok &= EXPECT(std::strcmp(name, "CUDA_ERROR_NOT_READY") == 0) & EXPECT(text != nullptr && *text != 0);
  return ok & GIVES(CUDA_ERROR_INVALID_VALUE, cuGetErrorString, static_cast<CUresult>(987654), &text) & EXPECT(text == nullptr);
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  const CodeFile file;
  Library library;
  bool ok = modulesAreRead(file) & librariesAreRead(file, library) && writes(library.function, library.shared, 11);
  pausePoint();
  ok = ok && writes(library.function, library.shared, 12);
  ok &= rangesAreDescribed() & callbacksRun() & errorsHaveNames();
  ok &= WORKS(cuProfilerStart) & WORKS(cuProfilerStop) & WORKS(cuLibraryUnload, library.library);
  return verdict("driver-files", ok);
}
