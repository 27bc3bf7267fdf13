// Kernels that read and write through references of their module, which only PTX text can declare: each launch uses the present binding,
// also on another GPU.
#include "driver-entry.h"
#include "texture-reference-image.h"

constexpr int width = 32;
static CUmodule module;

static void launch(CUfunction kernel, CUdeviceptr out) {
  void* parameters[] = {&out};
  CALL(cuLaunchKernel, kernel, 1, 1, 1, width, 1, 1, 0, nullptr, parameters, nullptr);
}

static int check(const char* what, CUdeviceptr out, float first, float step) {
  float read[width];
  CALL(cuMemcpyDtoH, read, out, sizeof read);
  for (int i = 0; i < width; ++i)
    if (read[i] != first + step * static_cast<float>(i)) return std::fprintf(stderr, "%s: %g at %d\n", what, read[i], i), 1;
  return 0;
}

int main() {
  CHECK(cudaFree(nullptr));
  CALL(cuModuleLoadData, &module, image);
  CUfunction read, readFiltered, write;
  CALL(cuModuleGetFunction, &read, module, "read");
  CALL(cuModuleGetFunction, &readFiltered, module, "readFiltered");
  CALL(cuModuleGetFunction, &write, module, "write");
  CUtexref texels;
  CUsurfref places;
  CUdeviceptr out;
  CALL(cuModuleGetTexRef, &texels, module, "texels");
  CALL(cuModuleGetSurfRef, &places, module, "places");
  CALL(cuMemAlloc, &out, sizeof(float) * 2 * width);

  // An array that is sampled between its elements: at i the mean of elements i - 1 and i, and for the first one of it and the border.
  CUDA_ARRAY3D_DESCRIPTOR shape{width, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUDA_ARRAY3D_DESCRIPTOR numbers{width, 0, 0, CU_AD_FORMAT_SIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST};
  CUarray array, written, replaced;
  CALL(cuArray3DCreate, &replaced, &shape);
  CALL(cuTexRefSetArray, texels, replaced, CU_TRSA_OVERRIDE_FORMAT);
  CALL(cuArray3DCreate, &array, &shape);
  CALL(cuArray3DCreate, &written, &numbers);
  float values[2 * width];
  for (int i = 0; i < 2 * width; ++i) values[i] = static_cast<float>(2 * i + 1);
  CALL(cuMemcpyHtoA, array, 0, values, sizeof(float) * width);
  CALL(cuTexRefSetArray, texels, array, CU_TRSA_OVERRIDE_FORMAT);
  CALL(cuArrayDestroy, replaced);
  CALL(cuTexRefSetFilterMode, texels, CU_TR_FILTER_MODE_LINEAR);
  CALL(cuTexRefSetAddressMode, texels, 0, CU_TR_ADDRESS_MODE_BORDER);
  float border[4] = {-1, 0, 0, 0};
  CALL(cuTexRefSetBorderColor, texels, border);
  CALL(cuSurfRefSetArray, places, written, 0);
  CALL(cuParamSetTexRef, readFiltered, CU_PARAM_TR_DEFAULT, texels);  // accepts only a bound reference

  // A reference that is bound to freed memory.
  CUtexref other;
  CUdeviceptr freed;
  size_t offset = 77;
  CALL(cuTexRefCreate, &other);
  CALL(cuMemAlloc, &freed, 4096);
  CALL(cuTexRefSetAddress, &offset, other, freed, 4096);
  CALL(cuMemFree, freed);
  pausePoint();
  CUdeviceptr bound;
  CALL(cuTexRefGetAddress, &bound, other);
  if (bound != freed) return std::fprintf(stderr, "another address is bound\n"), 1;
  CALL(cuTexRefDestroy, other);
  launch(readFiltered, out);
  if (check("filtered", out, 0, 2) != 0) return 1;

  int first = 40;
  void* parameters[] = {&first};
  CALL(cuLaunchKernel, write, 1, 1, 1, width, 1, 1, 0, nullptr, parameters, nullptr);
  int found[width];
  CALL(cuMemcpyAtoH, found, written, 0, sizeof found);
  for (int i = 0; i < width; ++i)
    if (found[i] != first + i) return std::fprintf(stderr, "written: %d at %d\n", found[i], i), 1;

  // Linear memory, rebound to another part of it while a launch may be pending.
  CUdeviceptr memory;
  CALL(cuMemAlloc, &memory, 4096);
  CALL(cuMemcpyHtoD, memory, values, sizeof(float) * width);
  CALL(cuMemcpyHtoD, memory + 512, values + width, sizeof(float) * width);
  CALL(cuTexRefSetFilterMode, texels, CU_TR_FILTER_MODE_POINT);
  for (int part = 0; part < 2; ++part) {
    CALL(cuTexRefSetAddress, &offset, texels, memory + static_cast<CUdeviceptr>(512 * part), sizeof(float) * width);
    launch(read, out + sizeof(float) * width * static_cast<CUdeviceptr>(part));
  }
  if (check("linear", out, 1, 2) != 0 || check("linear, bound again", out + sizeof(float) * width, 2 * width + 1, 2) != 0) return 1;
  CUarray still;
  if (DRIVER(cuTexRefGetArray)(&still, texels) == CUDA_SUCCESS) return std::fprintf(stderr, "the array is still bound\n"), 1;
  CALL(cuModuleUnload, module);
  return 0;
}
