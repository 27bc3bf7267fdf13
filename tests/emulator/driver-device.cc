#include <cstring>

#include "driver-fixture.h"

using namespace vgpu::test;

TEST_CASE("a device reports its properties") {
  REQUIRE_CUDA(cuInit(0));
  int version = 0, count = 0, major = 0, warp = 0;
  CHECK_CUDA(cuDriverGetVersion(&version));
  CHECK_EQ(version, CUDA_VERSION);
  CHECK_CUDA(cuDeviceGetCount(&count));
  CHECK_GE(count, 1);
  CUdevice device = 0;
  REQUIRE_CUDA(cuDeviceGet(&device, 0));
  char name[64];
  CHECK_CUDA(cuDeviceGetName(name, sizeof name, device));
  CHECK_GT(std::strlen(name), 0);
  CHECK_CUDA(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  CHECK_EQ(major, 9);
  CHECK_CUDA(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  CHECK_EQ(warp, 32);
  size_t bytes = 0;
  CHECK_CUDA(cuDeviceTotalMem(&bytes, device));
  CHECK_GE(bytes, size_t{1} << 30);
}

TEST_CASE("every attribute of cuda.h has a value, and numbers past the last one are refused") {
  REQUIRE_CUDA(cuInit(0));
  for (int attribute = 1; attribute < CU_DEVICE_ATTRIBUTE_MAX; ++attribute) {
    CAPTURE(attribute);
    int value = 0;
    CHECK_CUDA(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), 0));
  }
  int value = 0;
  CHECK_ANSWER(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a device is found by its PCI address") {
  REQUIRE_CUDA(cuInit(0));
  char id[32];
  REQUIRE_CUDA(cuDeviceGetPCIBusId(id, sizeof id, 0));
  CUdevice device = -1;
  CHECK_CUDA(cuDeviceGetByPCIBusId(&device, id));
  CHECK_EQ(device, 0);
  CHECK_ANSWER(cuDeviceGetPCIBusId(id, 3, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a device that does not exist is refused") {
  REQUIRE_CUDA(cuInit(0));
  int count = 0;
  REQUIRE_CUDA(cuDeviceGetCount(&count));
  CUdevice device = 0;
  CHECK_ANSWER(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  CHECK_ANSWER(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("every error code of cuda.h has its name and a text") {
  const char* text = nullptr;
  CHECK_EQ(nameOf(CUDA_ERROR_ILLEGAL_ADDRESS), "CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK_CUDA(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK_EQ(std::string(text), "out of memory");
  CHECK_ANSWER(cuGetErrorString(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(text, nullptr);
}

TEST_CASE("entries are found by base name, version and flavour") {
  REQUIRE_CUDA(cuInit(0));
  void *newest = nullptr, *old = nullptr, *perThread = nullptr, *none = &none;
  CUdriverProcAddressQueryResult result;
  CHECK_CUDA(cuGetProcAddress("cuCtxCreate", &newest, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &result));
  CHECK_EQ(result, CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK_CUDA(cuGetProcAddress("cuCtxCreate", &old, 4000, CU_GET_PROC_ADDRESS_DEFAULT, &result));
  CHECK_NE(newest, old);
  CHECK_CUDA(cuGetProcAddress("cuLaunchKernel", &old, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &result));
  CHECK_CUDA(
      cuGetProcAddress("cuLaunchKernel", &perThread, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &result));
  CHECK_NE(old, perThread);
  CHECK_CUDA(cuGetProcAddress("cuNoSuchThing", &none, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &result));
  CHECK_EQ(result, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK_EQ(none, nullptr);
  CHECK_CUDA(cuGetProcAddress("cuMemAlloc_v2", &none, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &result));
  CHECK_EQ(result, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK_CUDA(cuGetProcAddress("cuLibraryLoadData", &none, 11000, CU_GET_PROC_ADDRESS_DEFAULT, &result));
  CHECK_EQ(result, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}
