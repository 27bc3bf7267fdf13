#include <atomic>
#include <numeric>
#include <thread>

#include "driver-fixture.h"

using namespace vgpu::test;

TEST_CASE("rows are copied between pitches") {
  Device device;
  CUdeviceptr address = 0;
  size_t pitch = 0;
  REQUIRE_CUDA(cuMemAllocPitch(&address, &pitch, 12, 5, 4));
  std::vector<uint32_t> out(15), in(15);
  std::iota(out.begin(), out.end(), 1);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = out.data();
  copy.srcPitch = 12;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = address;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 12;
  copy.Height = 5;
  REQUIRE_CUDA(cuMemcpy2D(&copy));
  CHECK_EQ(device.read(address + 4 * pitch + 8), 15);
  std::swap(copy.srcMemoryType, copy.dstMemoryType);
  std::swap(copy.srcPitch, copy.dstPitch);
  copy.srcDevice = address;
  copy.dstHost = in.data();
  REQUIRE_CUDA(cuMemcpy2D(&copy));
  CHECK_EQ(in, out);
  copy.dstPitch = 8;
  CHECK_ANSWER(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.dstPitch = 12;
  copy.Height = 1 << 20;
  CHECK_ANSWER(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an array keeps what is copied into its slices") {
  Device device;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{4, 3, 2, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
  CUarray array = nullptr;
  REQUIRE_CUDA(cuArray3DCreate(&array, &descriptor));
  std::vector<uint32_t> out(24), in(24);
  std::iota(out.begin(), out.end(), 100);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = out.data();
  copy.srcPitch = 16;
  copy.srcHeight = 3;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 16;
  copy.Height = 3;
  copy.Depth = 2;
  REQUIRE_CUDA(cuMemcpy3D(&copy));
  CUDA_MEMCPY3D back{};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = array;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = in.data();
  back.dstPitch = 16;
  back.dstHeight = 3;
  back.WidthInBytes = 16;
  back.Height = 3;
  back.Depth = 2;
  REQUIRE_CUDA(cuMemcpy3D(&back));
  CHECK_EQ(in, out);
  uint32_t one = 0;
  back.srcXInBytes = 8;
  back.srcY = back.srcZ = 1;
  back.dstHost = &one;
  back.WidthInBytes = 4;
  back.Height = back.Depth = 1;
  REQUIRE_CUDA(cuMemcpy3D(&back));
  CHECK_EQ(one, 100 + 12 + 4 + 2);
  back.WidthInBytes = 16;
  CHECK_ANSWER(cuMemcpy3D(&back), CUDA_ERROR_INVALID_VALUE);
  CUDA_ARRAY3D_DESCRIPTOR asked{};
  CHECK_CUDA(cuArray3DGetDescriptor(&asked, array));
  CHECK_EQ(asked.Depth, 2);
  CHECK_CUDA(cuArrayDestroy(array));
  CHECK_ANSWER(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a mipmapped array's levels halve") {
  Device device;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{16, 8, 0, CU_AD_FORMAT_FLOAT, 2, 0};
  CUmipmappedArray mipmaps = nullptr;
  REQUIRE_CUDA(cuMipmappedArrayCreate(&mipmaps, &descriptor, 10));
  CUarray level = nullptr;
  CUDA_ARRAY_DESCRIPTOR asked{};
  REQUIRE_CUDA(cuMipmappedArrayGetLevel(&level, mipmaps, 4));
  CHECK_CUDA(cuArrayGetDescriptor(&asked, level));
  CHECK_EQ(asked.Width, 1);
  CHECK_EQ(asked.Height, 1);
  CHECK_ANSWER(cuMipmappedArrayGetLevel(&level, mipmaps, 5), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuArrayDestroy(level));  // as in the driver: no error, no effect
  CHECK_CUDA(cuArrayGetDescriptor(&asked, level));
  CHECK_CUDA(cuMipmappedArrayDestroy(mipmaps));
}

TEST_CASE("the destruction of an array waits for the work before it, and then frees its memory") {
  Device device;
  constexpr size_t width = 1 << 14, height = 1 << 8;
  const CUdeviceptr copied = device.allocate(width * height);
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{width, height, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  size_t freeBefore = 0, freeAfter = 0, total = 0;
  REQUIRE_CUDA(cuMemGetInfo(&freeBefore, &total));
  for (bool isMipmapped : {false, true}) {
    CUarray array = nullptr;
    CUmipmappedArray mipmap = nullptr;
    if (isMipmapped) {
      REQUIRE_CUDA(cuMipmappedArrayCreate(&mipmap, &descriptor, 2));
      REQUIRE_CUDA(cuMipmappedArrayGetLevel(&array, mipmap, 0));
    } else {
      REQUIRE_CUDA(cuArray3DCreate(&array, &descriptor));
    }
    std::atomic<bool> isReleased = false;
    auto await = [](void* released) { static_cast<std::atomic<bool>*>(released)->wait(false); };
    REQUIRE_CUDA(cuLaunchHostFunc(stream, await, &isReleased));
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = array;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = copied;
    copy.dstPitch = copy.WidthInBytes = width;
    copy.Height = height;
    REQUIRE_CUDA(cuMemcpy2DAsync(&copy, stream));
    std::thread releasing([&] {
      usleep(10'000);  // so that the array is being destroyed when the work ends
      isReleased = true;
      isReleased.notify_all();
    });
    CHECK_CUDA(isMipmapped ? cuMipmappedArrayDestroy(mipmap) : cuArrayDestroy(array));
    CHECK(isReleased.load());
    CHECK_CUDA(cuMemGetInfo(&freeAfter, &total));
    CHECK_EQ(freeAfter, freeBefore);
    releasing.join();
  }
  CHECK_CUDA(cuStreamDestroy(stream));
}

TEST_CASE("a texture object's resource can be queried, and handles are reused lowest first, but not by the next object") {
  Device device;
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {device.allocate(256), CU_AD_FORMAT_FLOAT, 1, 256};
  CUDA_TEXTURE_DESC texture{};
  texture.filterMode = CU_TR_FILTER_MODE_POINT;
  CUtexObject first = 0, second = 0, third = 0, fourth = 0;
  REQUIRE_CUDA(cuTexObjectCreate(&first, &resource, &texture, nullptr));
  REQUIRE_CUDA(cuTexObjectCreate(&second, &resource, &texture, nullptr));
  CHECK_NE(first, second);
  CHECK_CUDA(cuTexObjectDestroy(first));
  REQUIRE_CUDA(cuTexObjectCreate(&third, &resource, &texture, nullptr));
  REQUIRE_CUDA(cuTexObjectCreate(&fourth, &resource, &texture, nullptr));
  CHECK_NE(third, first);
  CHECK_EQ(fourth, first);
  CUDA_RESOURCE_DESC asked{};
  CHECK_CUDA(cuTexObjectGetResourceDesc(&asked, second));
  CHECK_EQ(asked.res.linear.devPtr, resource.res.linear.devPtr);
  resource.res.linear.sizeInBytes = 257;
  CHECK_ANSWER(cuTexObjectCreate(&third, &resource, &texture, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("each device numbers its own textures") {
  Device first, second(1);
  CUtexObject ofFirst = 0, ofSecond = 0;
  for (auto& [device, texture] : {std::pair{&first, &ofFirst}, {&second, &ofSecond}}) {
    CHECK_CUDA(cuCtxSetCurrent(device->context));
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {device->allocate(256), CU_AD_FORMAT_FLOAT, 1, 256};
    CUDA_TEXTURE_DESC how{};
    REQUIRE_CUDA(cuTexObjectCreate(texture, &resource, &how, nullptr));
  }
  CHECK_EQ(ofFirst, ofSecond);
  CHECK_CUDA(cuTexObjectDestroy(ofSecond));
  CHECK_ANSWER(cuTexObjectDestroy(ofSecond), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuCtxSetCurrent(first.context));
  CHECK_CUDA(cuTexObjectDestroy(ofFirst));
  CHECK_CUDA(cuCtxSetCurrent(second.context));  // puts both contexts on the stack again, because they pop themselves when they end
}

namespace {

// Blocks later work until the flag is set.
void hold(void* flag) { static_cast<std::atomic<int>*>(flag)->wait(0); }

}  // namespace

TEST_CASE("pending work can still use a texture that is destroyed behind it, and its handle is not reused before") {
  Device device;
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUDA_ARRAY3D_DESCRIPTOR descriptor{4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
  CUarray array = nullptr, other = nullptr;
  REQUIRE_CUDA(cuArray3DCreate(&array, &descriptor));
  std::vector<uint32_t> numbers{1, 2, 3, 4}, others{5, 6, 7, 8};
  uint32_t* found = nullptr;  // pinned: a copy to pageable memory would wait
  REQUIRE_CUDA(cuMemAllocHost(reinterpret_cast<void**>(&found), 16));
  REQUIRE_CUDA(cuMemcpyHtoA(array, 0, numbers.data(), 16));
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC texture{};
  CUtexObject first = 0, second = 0, third = 0;
  REQUIRE_CUDA(cuTexObjectCreate(&first, &resource, &texture, nullptr));

  std::atomic<int> released{0};
  REQUIRE_CUDA(cuLaunchHostFunc(stream, hold, &released));
  REQUIRE_CUDA(cuMemcpyAtoHAsync(found, array, 0, 16, stream));
  CHECK_CUDA(cuTexObjectDestroy(first));
  CHECK_ANSWER(cuTexObjectDestroy(first), CUDA_ERROR_INVALID_VALUE);
  REQUIRE_CUDA(cuArray3DCreate(&other, &descriptor));
  REQUIRE_CUDA(cuMemcpyHtoA(other, 0, others.data(), 16));
  resource.res.array.hArray = other;
  REQUIRE_CUDA(cuTexObjectCreate(&second, &resource, &texture, nullptr));
  CHECK_NE(second, first);

  released = 1;
  released.notify_all();
  CHECK_CUDA(cuArrayDestroy(array));
  CHECK_ANSWER(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  CHECK_EQ(std::vector(found, found + 4), numbers);
  REQUIRE_CUDA(cuTexObjectCreate(&third, &resource, &texture, nullptr));
  REQUIRE_CUDA(cuTexObjectCreate(&third, &resource, &texture, nullptr));
  CHECK_EQ(third, first);
  CHECK_CUDA(cuMemFreeHost(found));
}
