// When a kernel's code is loaded: queried, at each kind of first use, and by request.
#include "conformance.h"

namespace {

const char image[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry first() { ret; }\n.visible .entry second() { ret; }\n.visible .entry third() { ret; }\n";

bool isLoaded(CUfunction function) {
  CUfunctionLoadingState state{};
  SAYCU(cuFuncIsLoaded, &state, function);
  VALUE(state);
  return state == CU_FUNCTION_LOADING_STATE_LOADED;
}

CUmodule load() {
  CUmodule module;
  CHECK(cudaFree(nullptr));
  CALL(cuModuleLoadData, &module, image);
  return module;
}

CUfunction named(CUmodule module, const char* name) {
  CUfunction function;
  CALL(cuModuleGetFunction, &function, module, name);
  return function;
}

}  // namespace

SECTION(mode) {
  CUmoduleLoadingMode mode{};
  CHECK(cudaFree(nullptr));
  SAYCU(cuModuleGetLoadingMode, &mode);
  VALUE(mode);
}

SECTION(launched) {
  const CUmodule module = load();
  const CUfunction first = named(module, "first"), second = named(module, "second");
  isLoaded(first);
  SAYCU(cuLaunchKernel, first, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  isLoaded(first);
  isLoaded(second);
}

SECTION(requested) {
  const CUmodule module = load();
  const CUfunction first = named(module, "first"), second = named(module, "second"), third = named(module, "third");
  SAYCU(cuFuncLoad, second);
  isLoaded(second);
  isLoaded(first);
  SAYCU(cuFuncLoad, second);
  int value = 0;
  SAYCU(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, third);
  isLoaded(third);
  SAYCU(cuFuncSetAttribute, first, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024);
  isLoaded(first);
}

SECTION(kernels) {
  CUlibrary library;
  CUkernel kernel;
  CUfunction function;
  CHECK(cudaFree(nullptr));
  CALL(cuLibraryLoadData, &library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  CALL(cuLibraryGetKernel, &kernel, library, "first");
  CALL(cuKernelGetFunction, &function, kernel);
  isLoaded(function);
  SAYCU(cuFuncLoad, function);
  isLoaded(function);
}

SECTION(refused) {
  const CUmodule module = load();
  CUfunctionLoadingState state{};
  SAYCU(cuFuncIsLoaded, nullptr, named(module, "first"));
  SAYCU(cuFuncIsLoaded, &state, nullptr);
  SAYCU(cuFuncLoad, nullptr);
}
