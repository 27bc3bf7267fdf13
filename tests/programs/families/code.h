// Code that is loaded, linked and unloaded while the program runs.
#pragma once

#include "../texture-reference-image.h"
#include "place.h"

namespace families {

constexpr unsigned codeThreads = 64;

// out[i] = factor * i; and the same by a function in another image.
constexpr const char* scaleImage = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 factor;
.visible .entry scale(.param .u64 out)
{
  .reg .b32 %factor, %value, %i;
  .reg .b64 %base, %offset;
  ld.param.u64 %base, [out];
  cvta.to.global.u64 %base, %base;
  mov.u32 %i, %tid.x;
  mul.wide.u32 %offset, %i, 4;
  add.s64 %base, %base, %offset;
  ld.global.u32 %factor, [factor];
  mul.lo.u32 %value, %factor, %i;
  st.global.u32 [%base], %value;
  ret;
}
)";
constexpr const char* callerImage = R"(
.version 7.5
.target sm_75
.address_size 64
.extern .func (.param .b32 result) scaled(.param .b32 i);
.visible .entry scale(.param .u64 out)
{
  .reg .b32 %i, %value;
  .reg .b64 %base, %offset;
  ld.param.u64 %base, [out];
  cvta.to.global.u64 %base, %base;
  mov.u32 %i, %tid.x;
  mul.wide.u32 %offset, %i, 4;
  add.s64 %base, %base, %offset;
  { .param .b32 a; .param .b32 r; st.param.b32 [a], %i; call (r), scaled, (a); ld.param.b32 %value, [r]; }
  st.global.u32 [%base], %value;
  ret;
}
)";
constexpr const char* calleeImage = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 factor;
.visible .func (.param .b32 result) scaled(.param .b32 i)
{
  .reg .b32 %i, %factor;
  ld.param.b32 %i, [i];
  ld.global.u32 %factor, [factor];
  mul.lo.u32 %i, %factor, %i;
  st.param.b32 [result], %i;
  ret;
}
)";

// Whether `scale` multiplies by the value of `factor`.
inline bool scales(const char* family, const Place& place, CUfunction scale, CUdeviceptr factor) {
  DeviceArray<uint32_t> data(codeThreads);
  uint32_t* address = data;
  void* parameters[] = {&address};
  Numbers found(codeThreads), wanted(codeThreads);
  for (unsigned i = 0; i < codeThreads; ++i) wanted[i] = place.seed * i;
  CALL(cuMemcpyHtoDAsync, factor, &place.seed, sizeof place.seed, place.stream);
  CALL(cuLaunchKernel, scale, 1, 1, 1, codeThreads, 1, 1, 0, place.stream, parameters, nullptr);
  CHECK(cudaMemcpyAsync(found.data(), data, codeThreads * sizeof(uint32_t), cudaMemcpyDeviceToHost, place.stream));
  place.wait();
  return same(family, found, wanted);
}

inline bool scalesAndEnds(const char* family, const Place& place, CUmodule module) {
  CUfunction scale;
  CUdeviceptr factor;
  size_t bytes = 0;
  CALL(cuModuleGetFunction, &scale, module, "scale");
  CALL(cuModuleGetGlobal, &factor, &bytes, module, "factor");
  const bool ok = EXPECT(bytes == sizeof(uint32_t)) & scales(family, place, scale, factor);
  CALL(cuModuleUnload, module);
  return ok;
}

inline bool modules(const Place& place) {
  CUmodule module;
  CALL(cuModuleLoadData, &module, scaleImage);
  return scalesAndEnds("modules", place, module);
}

inline bool linked(const Place& place) {
  CUmodule module;
  CUlinkState link;
  void* image = nullptr;
  size_t bytes = 0;
  char log[1024] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CALL(cuLinkCreate, 2, options, values, &link);
  for (const char* part : {callerImage, calleeImage})
    CALL(cuLinkAddData, link, CU_JIT_INPUT_PTX, const_cast<char*>(part), std::strlen(part) + 1, "part", 0, nullptr, nullptr);
  CALL(cuLinkComplete, link, &image, &bytes);
  CALL(cuModuleLoadData, &module, image);
  CALL(cuLinkDestroy, link);
  return EXPECT(bytes != 0) & scalesAndEnds("linked", place, module);
}

inline bool codeLibraries(const Place& place) {
  CUlibrary library;
  CUkernel scale;
  CUdeviceptr factor;
  size_t bytes = 0;
  unsigned kernels = 0;
  int most = 0;
  CALL(cuLibraryLoadData, &library, scaleImage, nullptr, nullptr, 0, nullptr, nullptr, 0);
  CALL(cuLibraryGetKernel, &scale, library, "scale");
  CALL(cuLibraryGetKernelCount, &kernels, library);
  CALL(cuLibraryGetGlobal, &factor, &bytes, library, "factor");
  CALL(cuKernelGetAttribute, &most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, scale, 0);
  const bool ok = EXPECT(kernels == 1) & EXPECT(bytes == sizeof(uint32_t)) & EXPECT(most >= static_cast<int>(codeThreads)) &
                  scales("code libraries", place, reinterpret_cast<CUfunction>(scale), factor);
  CALL(cuLibraryUnload, library);
  return ok;
}

// A module's texture and surface references, bound to an array and to memory in turn.
inline bool references(const Place& place) {
  constexpr unsigned width = 32;
  const int first = static_cast<int>(place.seed % 1000000);
  CUmodule module;
  CUfunction read, write;
  CUtexref texels;
  CUsurfref places;
  CUarray array;
  CUdeviceptr in, out;
  size_t offset = 77;
  CALL(cuModuleLoadData, &module, image);
  CALL(cuModuleGetFunction, &read, module, "read");
  CALL(cuModuleGetFunction, &write, module, "write");
  CALL(cuModuleGetTexRef, &texels, module, "texels");
  CALL(cuModuleGetSurfRef, &places, module, "places");
  CUDA_ARRAY3D_DESCRIPTOR shape{width, 0, 0, CU_AD_FORMAT_SIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST};
  CALL(cuArray3DCreate, &array, &shape);
  CALL(cuMemAlloc, &in, width * sizeof(float));
  CALL(cuMemAlloc, &out, width * sizeof(float));
  CALL(cuSurfRefSetArray, places, array, 0);
  std::vector<float> values(width), read2(width);
  std::vector<int> written(width), wanted(width);
  for (unsigned i = 0; i < width; ++i) values[i] = static_cast<float>(first + static_cast<int>(i)), wanted[i] = first + static_cast<int>(i);
  CALL(cuMemcpyHtoDAsync, in, values.data(), width * sizeof(float), place.stream);
  CALL(cuTexRefSetFormat, texels, CU_AD_FORMAT_FLOAT, 1);
  CALL(cuTexRefSetAddress, &offset, texels, in, width * sizeof(float));
  void *reads[] = {&out}, *writes[] = {const_cast<int*>(&first)};
  CALL(cuLaunchKernel, read, 1, 1, 1, width, 1, 1, 0, place.stream, reads, nullptr);
  CALL(cuLaunchKernel, write, 1, 1, 1, width, 1, 1, 0, place.stream, writes, nullptr);
  CALL(cuMemcpyDtoHAsync, read2.data(), out, width * sizeof(float), place.stream);
  CALL(cuMemcpyAtoHAsync, written.data(), array, 0, width * sizeof(int), place.stream);
  place.wait();
  const bool ok = EXPECT(offset == 0) & same("texture references", read2, values) & same("surface references", written, wanted);
  CALL(cuModuleUnload, module);
  CALL(cuArrayDestroy, array);
  CALL(cuMemFree, in);
  CALL(cuMemFree, out);
  return ok;
}

}  // namespace families
