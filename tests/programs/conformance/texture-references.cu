// Texture and surface references: settings, bindings, and those of a module.
#include "../texture-reference-image.h"
#include "conformance.h"

static CUmodule module;
static CUfunction readTexels;

static void load() {
  CHECK(cudaFree(nullptr));
  SAYCU(cuModuleLoadData, &module, image);
  SAYCU(cuModuleGetFunction, &readTexels, module, "read");
}

static void show(CUtexref reference, CUdeviceptr memory = 1, CUarray array = nullptr, CUmipmappedArray levels = nullptr) {
  CUarray_format format = CU_AD_FORMAT_HALF;
  CUaddress_mode mode = CU_TR_ADDRESS_MODE_MIRROR;
  CUfilter_mode filter = static_cast<CUfilter_mode>(7);
  int channels = 77, anisotropy = 77;
  unsigned flags = 77;
  float bias = 77, least = 77, most = 77, border[4] = {77, 77, 77, 77};
  SAYCU(cuTexRefGetFormat, &format, &channels, reference);
  VALUE(format);
  VALUE(channels);
  for (int axis = -1; axis < 4; ++axis) {
    SAYCU(cuTexRefGetAddressMode, &mode, reference, axis);
    VALUE(mode);
  }
  SAYCU(cuTexRefGetFilterMode, &filter, reference);
  VALUE(filter);
  SAYCU(cuTexRefGetMipmapFilterMode, &filter, reference);
  VALUE(filter);
  SAYCU(cuTexRefGetMipmapLevelBias, &bias, reference);
  VALUE(bias * 100);
  SAYCU(cuTexRefGetMipmapLevelClamp, &least, &most, reference);
  VALUE(least);
  VALUE(most);
  SAYCU(cuTexRefGetMaxAnisotropy, &anisotropy, reference);
  VALUE(anisotropy);
  SAYCU(cuTexRefGetBorderColor, border, reference);
  for (float part : border) VALUE(part);
  SAYCU(cuTexRefGetFlags, &flags, reference);
  VALUE(flags);
  CUdeviceptr address = 0;
  CUarray bound = nullptr;
  CUmipmappedArray boundLevels = nullptr;
  if (SAYCU(cuTexRefGetAddress, &address, reference) == CUDA_SUCCESS) VALUE(address == memory);
  if (SAYCU(cuTexRefGetArray, &bound, reference) == CUDA_SUCCESS) VALUE(bound == array);
  if (SAYCU(cuTexRefGetMipmappedArray, &boundLevels, reference) == CUDA_SUCCESS) VALUE(boundLevels == levels);
}

SECTION(settings) {
  DRIVER(cuInit)(0);
  CUtexref reference = nullptr;
  SAYCU(cuTexRefCreate, &reference);
  CHECK(cudaFree(nullptr));
  SAYCU(cuTexRefCreate, nullptr);
  SAYCU(cuTexRefCreate, &reference);
  show(reference);
  SAYCU(cuTexRefSetFormat, reference, CU_AD_FORMAT_UNSIGNED_INT8, 4);
  SAYCU(cuTexRefSetFormat, reference, CU_AD_FORMAT_FLOAT, 3);
  SAYCU(cuTexRefSetFormat, nullptr, CU_AD_FORMAT_FLOAT, 1);
  for (int axis : {-1, 0, 3}) SAYCU(cuTexRefSetAddressMode, reference, axis, CU_TR_ADDRESS_MODE_WRAP);
  SAYCU(cuTexRefSetFilterMode, reference, CU_TR_FILTER_MODE_LINEAR);
  SAYCU(cuTexRefSetMipmapFilterMode, reference, CU_TR_FILTER_MODE_LINEAR);
  SAYCU(cuTexRefSetMipmapFilterMode, reference, static_cast<CUfilter_mode>(2));
  SAYCU(cuTexRefSetMipmapLevelBias, reference, 0.5f);
  SAYCU(cuTexRefSetMipmapLevelClamp, reference, 0.0f, 2.0f);
  SAYCU(cuTexRefSetMaxAnisotropy, reference, 4);
  float border[4] = {1, 2, 3, 4};
  SAYCU(cuTexRefSetBorderColor, reference, border);
  SAYCU(cuTexRefSetBorderColor, reference, nullptr);
  for (unsigned flags : {3u, 0x10u, 0x80000000u, 2u}) SAYCU(cuTexRefSetFlags, reference, flags);
  show(reference);
  SAYCU(cuTexRefDestroy, reference);
  SAYCU(cuTexRefDestroy, nullptr);
  unsigned flags = 0;
  SAYCU(cuTexRefGetFlags, &flags, nullptr);
}

SECTION(bindings) {
  CHECK(cudaFree(nullptr));
  CUtexref reference = nullptr;
  CUdeviceptr memory = 0;
  CUarray array = nullptr;
  CUmipmappedArray levels = nullptr;
  SAYCU(cuTexRefCreate, &reference);
  SAYCU(cuMemAlloc, &memory, 1 << 16);
  CUDA_ARRAY_DESCRIPTOR shape{64, 4, CU_AD_FORMAT_UNSIGNED_INT16, 2};
  CUDA_ARRAY3D_DESCRIPTOR levelShape{64, 4, 0, CU_AD_FORMAT_HALF, 4, 0};
  SAYCU(cuArrayCreate, &array, &shape);
  SAYCU(cuMipmappedArrayCreate, &levels, &levelShape, 3);
  size_t offset = 77;
  SAYCU(cuTexRefSetAddress, &offset, reference, memory, 4096);
  VALUE(offset);
  show(reference, memory);
  SAYCU(cuTexRefSetAddress, &offset, reference, memory + 4, 4096);
  VALUE(offset);
  SAYCU(cuTexRefSetAddress, nullptr, reference, memory + 512, 4096);
  SAYCU(cuTexRefSetAddress, nullptr, reference, memory + 4, 4096);
  SAYCU(cuTexRefSetAddress, &offset, reference, memory, 0);
  SAYCU(cuTexRefSetAddress, &offset, reference, memory, size_t{1} << 40);
  SAYCU(cuTexRefSetAddress, &offset, reference, 0, 0);
  for (unsigned flags : {0u, 1u}) SAYCU(cuTexRefSetArray, reference, array, flags);
  SAYCU(cuTexRefSetArray, reference, nullptr, 1);
  show(reference, memory, array);
  for (unsigned flags : {0u, 1u}) SAYCU(cuTexRefSetMipmappedArray, reference, levels, flags);
  show(reference, memory, array, levels);
  CUDA_ARRAY_DESCRIPTOR flat{32, 4, CU_AD_FORMAT_FLOAT, 1};
  SAYCU(cuTexRefSetAddress2D, reference, &flat, memory, 512);
  show(reference, memory, array, levels);
  SAYCU(cuTexRefSetAddress2D, reference, &flat, memory + 4, 512);
  SAYCU(cuTexRefSetAddress2D, reference, &flat, memory, 100);
  SAYCU(cuTexRefSetAddress2D, reference, nullptr, memory, 512);
  SAYCU(cuTexRefSetArray, reference, array, CU_TRSA_OVERRIDE_FORMAT);
  SAYCU(cuArrayDestroy, array);
  CUarray bound = nullptr;
  SAYCU(cuTexRefGetArray, &bound, reference);
  SAYCU(cuTexRefDestroy, reference);
}

SECTION(names) {
  load();
  CUtexref reference = nullptr, again = nullptr;
  CUsurfref surface = nullptr, surfaceAgain = nullptr;
  SAYCU(cuModuleGetTexRef, &reference, module, "texels");
  SAYCU(cuModuleGetTexRef, &again, module, "texels");
  VALUE(reference == again);
  for (const char* name : {"none", "read", "places"}) SAYCU(cuModuleGetTexRef, &again, module, name);
  SAYCU(cuModuleGetTexRef, &again, module, nullptr);
  SAYCU(cuModuleGetTexRef, nullptr, module, "texels");
  SAYCU(cuModuleGetSurfRef, &surface, module, "places");
  SAYCU(cuModuleGetSurfRef, &surfaceAgain, module, "places");
  VALUE(surface == surfaceAgain);
  for (const char* name : {"none", "texels"}) SAYCU(cuModuleGetSurfRef, &surfaceAgain, module, name);
  show(reference);
  CUDA_ARRAY3D_DESCRIPTOR shape{64, 0, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};
  CUarray array = nullptr, bound = nullptr;
  SAYCU(cuArray3DCreate, &array, &shape);
  SAYCU(cuSurfRefGetArray, &bound, surface);
  SAYCU(cuSurfRefSetArray, surface, array, 0);
  SAYCU(cuSurfRefGetArray, &bound, surface);
  VALUE(bound == array);
  SAYCU(cuParamSetTexRef, readTexels, CU_PARAM_TR_DEFAULT, reference);
  SAYCU(cuModuleUnload, module);
}

// A kernel reads what its reference was bound to at the launch.
SECTION(launches) {
  load();
  CUtexref reference = nullptr;
  CUdeviceptr in = 0, out = 0;
  SAYCU(cuModuleGetTexRef, &reference, module, "texels");
  SAYCU(cuMemAlloc, &in, 4096);
  SAYCU(cuMemAlloc, &out, 4096);
  float numbers[256], read[32];
  for (int i = 0; i < 256; ++i) numbers[i] = static_cast<float>(i);
  SAYCU(cuMemcpyHtoD, in, numbers, sizeof numbers);
  size_t offset = 77;
  auto launch = [&] {
    void* parameters[] = {&out};
    SAYCU(cuLaunchKernel, readTexels, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr);
  };
  auto result = [&] {
    SAY(cudaDeviceSynchronize());
    SAYCU(cuMemcpyDtoH, read, out, sizeof read);
    VALUE(read[0]);
    VALUE(read[1]);
    VALUE(read[31]);
  };
  launch();
  SAY(cudaDeviceSynchronize());
  SAYCU(cuTexRefSetFormat, reference, CU_AD_FORMAT_FLOAT, 1);
  SAYCU(cuTexRefSetAddress, &offset, reference, in, 512);
  launch();
  result();
  launch();
  SAYCU(cuTexRefSetAddress, &offset, reference, in + 512, 512);
  result();
  launch();
  result();
}
