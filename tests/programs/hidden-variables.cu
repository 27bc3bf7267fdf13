// Variables of an explicitly loaded module that the program never looks up by name: only its kernels use them.
#include "program.h"

#include <cudaTypedefs.h>

template <typename Entry>
Entry find(const char* name, unsigned version) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) std::exit(3);
  return reinterpret_cast<Entry>(entry);
}

// Each launch: out[0] = hidden += 1, out[1] = table[hidden % 2]; table starts as {5, 9} and grows by 10.
const char* const ptx = R"(
.version 7.5
.target sm_75
.address_size 64

.global .align 4 .u32 hidden;
.visible .global .align 8 .b8 table[8] = {5, 0, 0, 0, 9, 0, 0, 0};

.visible .entry count(.param .u64 out)
{
  .reg .b32 %count, %index, %value;
  .reg .b64 %base, %entry;
  ld.param.u64 %base, [out];
  cvta.to.global.u64 %base, %base;
  ld.global.u32 %count, [hidden];
  add.u32 %count, %count, 1;
  st.global.u32 [hidden], %count;
  and.b32 %index, %count, 1;
  mov.u64 %entry, table;
  mad.wide.u32 %entry, %index, 4, %entry;
  ld.global.u32 %value, [%entry];
  add.u32 %value, %value, 10;
  st.global.u32 [%entry], %value;
  st.global.u32 [%base], %count;
  st.global.u32 [%base+4], %value;
  ret;
}
)";

std::vector<unsigned> launch(CUfunction kernel) {
  static const auto launchKernel = find<PFN_cuLaunchKernel_v4000>("cuLaunchKernel", 4000);
  DeviceArray<unsigned> out(2);
  unsigned* data = out;
  void* parameters[] = {&data};
  if (!EXPECT(launchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS)) std::exit(1);
  return out.download();
}

int main() {
  CHECK(cudaFree(nullptr));
  CUmodule module;
  CUfunction kernel;
  if (!EXPECT(find<PFN_cuModuleLoadData_v2000>("cuModuleLoadData", 2000)(&module, ptx) == CUDA_SUCCESS)) return 1;
  if (!EXPECT(find<PFN_cuModuleGetFunction_v2000>("cuModuleGetFunction", 2000)(&kernel, module, "count") == CUDA_SUCCESS))
    return 1;
  bool ok = same("first", launch(kernel), {1, 19}) & same("second", launch(kernel), {2, 15});
  pausePoint();
  ok &= same("third", launch(kernel), {3, 29}) & same("fourth", launch(kernel), {4, 25});
  ok &= EXPECT(find<PFN_cuModuleUnload_v2000>("cuModuleUnload", 2000)(module) == CUDA_SUCCESS);
  return verdict("hidden-variables", ok);
}
