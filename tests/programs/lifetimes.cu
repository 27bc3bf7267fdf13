// Objects that are destroyed directly after the launch that uses them, before it has run: a posted launch uses these objects, even if the
// program has since made others with the same handles or addresses.
#include <cstring>
#include <string>

#include "driver-entry.h"

namespace {

constexpr int width = 128;

// Holds a stream until the program has destroyed the objects that the work behind it uses, but not longer than that takes: a driver may let
// a destroying call wait for the work.
std::atomic<bool> destroyed{false};
void hold(void*) {
  for (int i = 0; i < 3000 && !destroyed; ++i) usleep(100);
}

__global__ void readTexture(cudaTextureObject_t texture, float level, float* out) {
  out[threadIdx.x] = tex2DLod<float>(texture, (threadIdx.x + 0.5f) / width, 0.5f, level);
}
__global__ void readLinear(cudaTextureObject_t texture, float* out) { out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x); }
__global__ void readSurface(cudaSurfaceObject_t surface, float* out) {
  out[threadIdx.x] = surf2Dread<float>(surface, threadIdx.x * sizeof(float), 0);
}
__global__ void add(float* out, float more) { out[threadIdx.x] += more; }

std::vector<float> numbersFrom(float first) {
  std::vector<float> numbers(width);
  for (int i = 0; i < width; ++i) numbers[i] = first + i;
  return numbers;
}

void fill(cudaArray_t array, const std::vector<float>& row) {
  CHECK(cudaMemcpy2DToArray(array, 0, 0, row.data(), width * sizeof(float), width * sizeof(float), 1, cudaMemcpyHostToDevice));
}

cudaArray_t arrayOf(float first) {
  const auto format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, width, 1, cudaArraySurfaceLoadStore));
  fill(array, numbersFrom(first));
  return array;
}

// Two levels; the second is half as wide; each element is `first`.
cudaMipmappedArray_t mipmapOf(float first) {
  const auto format = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t mipmap;
  cudaArray_t level;
  CHECK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(width, 1, 0), 2));
  CHECK(cudaGetMipmappedArrayLevel(&level, mipmap, 1));
  const std::vector<float> row(width / 2, first);
  CHECK(cudaMemcpy2DToArray(level, 0, 0, row.data(), width / 2 * sizeof(float), width / 2 * sizeof(float), 1,
                            cudaMemcpyHostToDevice));
  return mipmap;
}

cudaTextureObject_t textureOver(const cudaResourceDesc& resource, bool normalized) {
  cudaTextureDesc how{};
  for (cudaTextureAddressMode& mode : how.addressMode) mode = cudaAddressModeClamp;
  how.normalizedCoords = normalized;
  how.maxMipmapLevelClamp = 1;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  return texture;
}

cudaResourceDesc over(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

cudaResourceDesc over(cudaMipmappedArray_t mipmap) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = mipmap;
  return resource;
}

cudaResourceDesc over(float* memory) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {memory, cudaCreateChannelDesc<float>(), width * sizeof(float)};
  return resource;
}

// Adds the number in the module's variable to each element.
std::string imageOf(unsigned number) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .f32 number = 0f" +
         [number] {
           char text[9];
           const float value = static_cast<float>(number);
           unsigned bits;
           std::memcpy(&bits, &value, sizeof bits);
           std::snprintf(text, sizeof text, "%08X", bits);
           return std::string(text);
         }() +
         ";\n.visible .entry addNumber(.param .u64 out) {\n"
         "  .reg .u64 %a, %o;\n  .reg .u32 %t;\n  .reg .f32 %v, %n;\n"
         "  ld.param.u64 %a, [out];\n  cvta.to.global.u64 %a, %a;\n  mov.u32 %t, %tid.x;\n  mul.wide.u32 %o, %t, 4;\n"
         "  add.u64 %a, %a, %o;\n  ld.global.f32 %n, [number];\n  ld.global.f32 %v, [%a];\n  add.f32 %v, %v, %n;\n"
         "  st.global.f32 [%a], %v;\n  ret;\n}\n";
}

CUmodule moduleOf(unsigned number) {
  CUmodule module;
  check(find<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, imageOf(number).c_str()), "cuModuleLoadData");
  return module;
}

}  // namespace

int main() {
  DeviceArray<float> fromArray(width), fromMipmap(width), fromLinear(width), fromSurface(width), ordered(width),
      fromModule(width), memory(numbersFrom(300)), other(numbersFrom(900));
  for (float* out : {static_cast<float*>(ordered), static_cast<float*>(fromModule)})
    CHECK(cudaMemset(out, 0, width * sizeof(float)));
  const cudaArray_t array = arrayOf(100), surfaceArray = arrayOf(400);
  const cudaMipmappedArray_t mipmap = mipmapOf(200);
  const cudaTextureObject_t textures[] = {textureOver(over(array), true), textureOver(over(mipmap), true),
                                          textureOver(over(memory), false)};
  const cudaResourceDesc resource = over(surfaceArray);
  cudaSurfaceObject_t surface;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  const CUmodule module = moduleOf(7);
  CUfunction addNumber;
  check(find<decltype(&cuModuleGetFunction)>("cuModuleGetFunction")(&addNumber, module, "addNumber"), "cuModuleGetFunction");
  cudaStream_t held, behind;
  cudaEvent_t event;
  CHECK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&behind, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaDeviceSynchronize());

  CHECK(cudaLaunchHostFunc(held, hold, nullptr));
  readTexture<<<1, width, 0, held>>>(textures[0], 0, fromArray);
  readTexture<<<1, width, 0, held>>>(textures[1], 1, fromMipmap);
  readLinear<<<1, width, 0, held>>>(textures[2], fromLinear);
  readSurface<<<1, width, 0, held>>>(surface, fromSurface);
  add<<<1, width, 0, held>>>(ordered, 1);
  CHECK(cudaEventRecord(event, held));
  CHECK(cudaStreamWaitEvent(behind, event));
  add<<<1, width, 0, behind>>>(ordered, 2);
  CHECK(cudaGetLastError());

  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(held));
  for (cudaTextureObject_t texture : textures) CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaDestroySurfaceObject(surface));
  CHECK(cudaFreeArray(array));
  CHECK(cudaFreeArray(surfaceArray));
  CHECK(cudaFreeMipmappedArray(mipmap));
  // Other objects in their place, with other numbers.
  const cudaTextureObject_t later = textureOver(over(other), false);
  const cudaArray_t laterArray = arrayOf(800);
  CHECK(cudaEventCreate(&event));
  CHECK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  destroyed = true;
  pausePoint();
  CHECK(cudaStreamSynchronize(behind));
  CHECK(cudaDeviceSynchronize());

  // A module is unloaded behind its kernel by a call that waits for the kernel.
  float* out = fromModule;
  void* parameters[] = {&out};
  destroyed = false;
  CHECK(cudaLaunchHostFunc(held, hold, nullptr));
  check(find<decltype(&cuLaunchKernel)>("cuLaunchKernel")(addNumber, 1, 1, 1, width, 1, 1, 0, held, parameters, nullptr),
        "cuLaunchKernel");
  check(find<decltype(&cuModuleUnload)>("cuModuleUnload")(module), "cuModuleUnload");
  const CUmodule laterModule = moduleOf(9);

  bool ok = same("texture over an array", fromArray.download(), numbersFrom(100)) &
            same("texture over levels", fromMipmap.download(), std::vector<float>(width, 200)) &
            same("texture over memory", fromLinear.download(), numbersFrom(300)) &
            same("surface", fromSurface.download(), numbersFrom(400)) &
            same("behind an event", ordered.download(), std::vector<float>(width, 3)) &
            same("module", fromModule.download(), std::vector<float>(width, 7));
  readLinear<<<1, width, 0, held>>>(later, fromLinear);
  CHECK(cudaStreamSynchronize(held));
  ok &= same("the texture made since", fromLinear.download(), numbersFrom(900));
  check(find<decltype(&cuModuleUnload)>("cuModuleUnload")(laterModule), "cuModuleUnload");
  CHECK(cudaDestroyTextureObject(later));
  CHECK(cudaFreeArray(laterArray));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(held));
  CHECK(cudaStreamDestroy(behind));
  return verdict("lifetimes", ok);
}
