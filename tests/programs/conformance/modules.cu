// Modules, code libraries and linking at run time by the driver's entries: lookups and errors.
#include <string>

#include "conformance.h"

static const char* const text = R"(.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 counter = 5;
.visible .const .align 4 .u32 fixed = 6;
.visible .entry nothing(.param .u32 a, .param .u64 b)
{
  ret;
}
)";
static const char* const broken = ".version 7.5\n.target sm_75\n.address_size 64\nnonsense";

SECTION(loading) {
  CHECK(cudaFree(nullptr));
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  SAYCU(cuModuleLoadData, nullptr, text);
  SAYCU(cuModuleLoadData, &module, nullptr);
  SAYCU(cuModuleLoadData, &module, "");
  SAYCU(cuModuleLoadData, &module, "nonsense");
  SAYCU(cuModuleLoadData, &module, broken);
  SAYCU(cuModuleLoadData, &module, ".version 99.0\n.target sm_75\n.address_size 64\n");
  SAYCU(cuModuleLoadData, &module, ".version 7.5\n.target sm_999\n.address_size 64\n");
  SAYCU(cuModuleLoad, &module, "/nowhere/at-all");
  SAYCU(cuModuleLoadData, &module, text);
  SAYCU(cuModuleGetFunction, &function, module, "absent");
  SAYCU(cuModuleGetFunction, &function, module, nullptr);
  SAYCU(cuModuleGetFunction, nullptr, module, "nothing");
  SAYCU(cuModuleGetFunction, &function, nullptr, "nothing");
  SAYCU(cuModuleGetFunction, &function, module, "nothing");
  SAYCU(cuModuleGetGlobal, &address, &bytes, module, "absent");
  SAYCU(cuModuleGetGlobal, &address, &bytes, module, "nothing");
  SAYCU(cuModuleGetGlobal, &address, &bytes, module, "counter");
  VALUE(bytes);
  SAYCU(cuModuleGetGlobal, nullptr, &bytes, module, "fixed");
  SAYCU(cuModuleGetGlobal, nullptr, nullptr, module, "fixed");
  unsigned count = 9;
  SAYCU(cuModuleGetFunctionCount, &count, module);
  VALUE(count);
  CUmoduleLoadingMode mode{};
  SAYCU(cuModuleGetLoadingMode, &mode);
  VALUE(mode);
  CUmodule owner = nullptr;
  SAYCU(cuFuncGetModule, &owner, function);
  VALUE(owner == module);
  const char* name = nullptr;
  SAYCU(cuFuncGetName, &name, function);
  int value = 77;
  SAYCU(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, function);
  VALUE(value);
  SAYCU(cuFuncGetAttribute, &value, static_cast<CUfunction_attribute>(99), function);
  SAYCU(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr);
  SAYCU(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_NUM_REGS, 5);
  size_t offset = 77, size = 77;
  SAYCU(cuFuncGetParamInfo, function, 1, &offset, &size);
  VALUE(offset);
  VALUE(size);
  SAYCU(cuFuncGetParamInfo, function, 2, &offset, &size);
  unsigned a = 0;
  CUdeviceptr b = 0;
  void* arguments[] = {&a, &b};
  SAYCU(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
  SAYCU(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  SAYCU(cuLaunchKernel, function, 0, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
  SAYCU(cuLaunchKernel, function, 1, 1, 1, 2048, 1, 1, 0, nullptr, arguments, nullptr);
  SAYCU(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 1 << 20, nullptr, arguments, nullptr);
  SAYCU(cuLaunchKernel, nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
  char block[12] = {};
  size_t blockBytes = sizeof block;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &blockBytes, CU_LAUNCH_PARAM_END};
  SAYCU(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra);
  SAYCU(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, extra);
  SAYCU(cuModuleUnload, module);
  SAYCU(cuModuleUnload, nullptr);
}

SECTION(libraries) {
  CHECK(cudaFree(nullptr));
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  void* unified = nullptr;
  SAYCU(cuLibraryLoadData, &library, broken, nullptr, nullptr, 0, nullptr, nullptr, 0);
  SAYCU(cuLibraryLoadData, nullptr, text, nullptr, nullptr, 0, nullptr, nullptr, 0);
  SAYCU(cuLibraryLoadData, &library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0);
  SAYCU(cuLibraryLoadFromFile, &library, "/nowhere/at-all", nullptr, nullptr, 0, nullptr, nullptr, 0);
  SAYCU(cuLibraryLoadData, &library, text, nullptr, nullptr, 0, nullptr, nullptr, 0);
  SAYCU(cuLibraryGetKernel, &kernel, library, "absent");
  SAYCU(cuLibraryGetKernel, &kernel, library, "nothing");
  SAYCU(cuLibraryGetKernel, &kernel, nullptr, "nothing");
  SAYCU(cuLibraryGetGlobal, &address, &bytes, library, "absent");
  SAYCU(cuLibraryGetGlobal, &address, &bytes, library, "counter");
  VALUE(bytes);
  SAYCU(cuLibraryGetManaged, &address, &bytes, library, "counter");
  SAYCU(cuLibraryGetUnifiedFunction, &unified, library, "nothing");
  unsigned count = 9;
  SAYCU(cuLibraryGetKernelCount, &count, library);
  VALUE(count);
  CUmodule module = nullptr;
  SAYCU(cuLibraryGetModule, &module, library);
  SAYCU(cuKernelGetFunction, &function, kernel);
  CUlibrary owner = nullptr;
  SAYCU(cuKernelGetLibrary, &owner, kernel);
  VALUE(owner == library);
  int value = 77;
  SAYCU(cuKernelGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0);
  VALUE(value);
  SAYCU(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -2, kernel, 0);
  SAYCU(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 2048, kernel, 0);
  SAYCU(cuKernelGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0);
  VALUE(value);
  SAYCU(cuKernelGetAttribute, &value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 99);
  SAYCU(cuKernelGetAttribute, &value, static_cast<CUfunction_attribute>(99), kernel, 0);
  unsigned a = 0;
  CUdeviceptr b = 0;
  void* arguments[] = {&a, &b};
  SAYCU(cuLaunchKernel, reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
  SAYCU(cuLibraryUnload, library);
  SAYCU(cuLibraryUnload, nullptr);
}

SECTION(linking) {
  CHECK(cudaFree(nullptr));
  CUlinkState link = nullptr;
  void* image = nullptr;
  size_t bytes = 0;
  CUmodule module = nullptr;
  auto add = [&](const char* ptx) {
    return DRIVER(cuLinkAddData)(link, CU_JIT_INPUT_PTX, const_cast<char*>(ptx), std::string(ptx).size() + 1, "input", 0, nullptr, nullptr);
  };
  SAYCU(cuLinkCreate, 0, nullptr, nullptr, nullptr);
  SAYCU(cuLinkCreate, 0, nullptr, nullptr, &link);
  SAY(add(text));
  SAYCU(cuLinkAddFile, link, CU_JIT_INPUT_PTX, "/nowhere/at-all", 0, nullptr, nullptr);
  SAYCU(cuLinkComplete, link, &image, &bytes);
  VALUE(bytes != 0);
  SAYCU(cuModuleLoadData, &module, image);
  SAYCU(cuLinkDestroy, link);
  CALL(cuLinkCreate, 0, nullptr, nullptr, &link);
  SAY(add(broken));
  SAY(add(text));
  SAYCU(cuLinkComplete, link, &image, &bytes);
  SAYCU(cuModuleLoadData, &module, image);
  SAYCU(cuLinkDestroy, link);
  CALL(cuLinkCreate, 0, nullptr, nullptr, &link);
  SAYCU(cuLinkComplete, link, &image, &bytes);
  VALUE(bytes != 0);
  SAYCU(cuLinkDestroy, link);
  CALL(cuLinkCreate, 0, nullptr, nullptr, &link);
  SAY(add(".version 7.5\n.target sm_75\n.address_size 64\n.extern .func missing();\n.visible .entry e() { call missing, (); ret; }\n"));
  SAYCU(cuLinkComplete, link, &image, &bytes);
  SAYCU(cuLinkDestroy, link);
}
