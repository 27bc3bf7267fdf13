// Records what a real GPU reads from the textures of texture-cases.h: rows for texture-golden.inc, on standard output.
// Not part of the build:
//   nvcc -std=c++20 -O1 -arch=native tests/emulator/record-textures.cu -o record-textures
#include <cuda_fp16.h>

#include <cstdio>

#include "texture-cases.h"

using namespace vgpu::emulator;

__global__ void read(cudaTextureObject_t t, int geometry, const float4* places, float4* results, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float4 p = places[i];
  const int last = static_cast<int>(p.w);
  results[i] = geometry == 0   ? tex1D<float4>(t, p.x)
               : geometry == 1 ? tex2D<float4>(t, p.x, p.y)
               : geometry == 2 ? tex3D<float4>(t, p.x, p.y, p.z)
               : geometry == 3 ? tex1DLayered<float4>(t, p.x, last)
               : geometry == 4 ? tex2DLayered<float4>(t, p.x, p.y, last)
                               : tex2Dgather<float4>(t, p.x, p.y, last);
}

#define CHECK(call) \
  if (const cudaError_t error = call) return std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(error)), 1

int main() {
  constexpr std::string_view geometries[] = {"1d", "2d", "3d", "a1d", "a2d", "gather"};
  for (const TextureCase& c : textureCases) {
    const TextureFormat& format = formatOf(c);
    const auto elements = textureElements(c, [](float v) { return __half_as_ushort(__float2half(v)); });
    const auto places = texturePlaces(c);
    const int bits = 8 * format.channelBytes, more = format.channels > 1 ? bits : 0,
              most = format.channels > 2 ? bits : 0;
    const auto kind = format.kind == 0   ? cudaChannelFormatKindUnsigned
                      : format.kind == 1 ? cudaChannelFormatKindSigned
                                         : cudaChannelFormatKindFloat;
    const auto element = cudaCreateChannelDesc(bits, more, most, most, kind);
    const bool gathers = c.geometry == "gather";
    cudaArray_t array;
    CHECK(cudaMalloc3DArray(&array, &element, make_cudaExtent(c.width, c.height, c.slices),
                            isLayered(c) ? cudaArrayLayered
                            : gathers    ? cudaArrayTextureGather
                                         : cudaArrayDefault));
    cudaMemcpy3DParms copy{};
    const int rows = c.height ? c.height : 1, bytes = format.channelBytes * format.channels;
    copy.srcPtr = make_cudaPitchedPtr(const_cast<uint8_t*>(elements.data()), c.width * bytes, c.width, rows);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(c.width, rows, c.slices ? c.slices : 1);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc how{};
    for (auto& mode : how.addressMode) mode = static_cast<cudaTextureAddressMode>(c.addressing);
    how.filterMode = static_cast<cudaTextureFilterMode>(c.linear);
    how.readMode = format.kind == 2 ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
    how.normalizedCoords = c.normalized;
    for (int channel = 0; channel < 4; ++channel) how.borderColor[channel] = borderOf(c, channel);
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    float4 *in, *out;
    const size_t size = places.size() * sizeof(float4);
    CHECK(cudaMalloc(&in, size));
    CHECK(cudaMalloc(&out, size));
    CHECK(cudaMemcpy(in, places.data(), size, cudaMemcpyHostToDevice));
    int geometry = 0;
    while (geometries[geometry] != c.geometry) ++geometry;
    read<<<(c.places + 127) / 128, 128>>>(texture, geometry, in, out, c.places);
    std::vector<float> results(places.size() * 4);
    CHECK(cudaMemcpy(results.data(), out, size, cudaMemcpyDeviceToHost));
    std::printf("{\"%s\", \"%s\", %d, %d, %d, %d, %d, %s, %uu, %uu, %d, 0x%016llx},\n", c.geometry.data(),
                c.format.data(), c.width, c.height, c.slices, c.addressing, c.linear, c.normalized ? "true" : "false",
                c.elementSeed, c.placeSeed, c.places, static_cast<unsigned long long>(textureDigest(results)));
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
  }
}
