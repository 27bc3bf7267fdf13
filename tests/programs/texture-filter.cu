// Textures: linear and point filtering of images and volumes in every addressing mode, bytes read as fractions, linear memory fetched by
// index; the same objects give the same samples before and after the pause. Filter weights have 8 fractional bits (CUDA C++ Programming
// Guide, Linear Filtering), so samples are taken at 256ths of a texel, and may differ by one 256th of the texels' range per dimension,
// because hardware also rounds the weights' products.
#include "program.h"
#include "random-numbers.h"

#include <algorithm>
#include <memory>

constexpr int width = 32, height = 16, depth = 8, samples = 2048, block = 256;
constexpr double lowest = -1, highest = 1, rounding = (highest - lowest) / 256;

struct Case {
  const char* name;
  bool volume;
  cudaTextureAddressMode mode;
  cudaTextureFilterMode filter;
  bool normalized;  // whether coordinates run from 0 to 1 instead of to the size
};

const Case cases[] = {
    {"image, clamped", false, cudaAddressModeClamp, cudaFilterModeLinear, false},
    {"image, with a border", false, cudaAddressModeBorder, cudaFilterModeLinear, false},
    {"image, wrapped", false, cudaAddressModeWrap, cudaFilterModeLinear, true},
    {"image, mirrored", false, cudaAddressModeMirror, cudaFilterModeLinear, true},
    {"image, nearest texel", false, cudaAddressModeClamp, cudaFilterModePoint, false},
    {"volume, clamped", true, cudaAddressModeClamp, cudaFilterModeLinear, false},
    {"volume, wrapped", true, cudaAddressModeWrap, cudaFilterModeLinear, true},
};

__global__ void sample(cudaTextureObject_t texture, bool volume, const float3* places, float* results) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float3 place = places[i];
  results[i] = volume ? tex3D<float>(texture, place.x, place.y, place.z) : tex2D<float>(texture, place.x, place.y);
}

__global__ void readPlain(cudaTextureObject_t bytes, cudaTextureObject_t ints, float4* fractions, int* fetched) {
  const int x = threadIdx.x, y = blockIdx.x, i = y * width + x;
  fractions[i] = tex2D<float4>(bytes, x + 0.5f, y + 0.5f);
  fetched[i] = tex1Dfetch<int>(ints, width * height - 1 - i);
}

// Which texel coordinate `i` of a row of `count` texels reads; -1 is the border.
int addressed(int i, int count, cudaTextureAddressMode mode) {
  const int period = mode == cudaAddressModeMirror ? 2 * count : count;
  const int within = ((i % period) + period) % period;
  const int nearest = std::clamp(i, 0, count - 1);
  if (mode == cudaAddressModeWrap) return within;
  if (mode == cudaAddressModeMirror) return std::min(within, period - 1 - within);
  return mode == cudaAddressModeClamp || i == nearest ? nearest : -1;
}

// The sample at `place`, in texels, by the guide's formula.
double sampleOnHost(const Case& c, const std::vector<float>& texels, const float3& place) {
  const bool linear = c.filter == cudaFilterModeLinear;
  const double shift = linear ? 0.5 : 0, x = place.x - shift, y = place.y - shift, z = c.volume ? place.z - shift : 0;
  double sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const int dx = corner & 1, dy = corner >> 1 & 1, dz = corner >> 2;
    const auto weight = [&](double t, int far) {
      return linear ? (far ? t - std::floor(t) : 1 - (t - std::floor(t))) : !far;
    };
    const int i = addressed(int(std::floor(x)) + dx, width, c.mode),
              j = addressed(int(std::floor(y)) + dy, height, c.mode);
    const int k = c.volume ? addressed(int(std::floor(z)) + dz, depth, c.mode) : 0;
    if (i < 0 || j < 0 || k < 0) continue;
    sum += weight(x, dx) * weight(y, dy) * weight(z, dz) * texels[(k * height + j) * width + i];
  }
  return sum;
}

// Coordinates within and around the texture, in texels.
std::vector<float3> randomPlaces() {
  const auto drawn = randomInts(3 * samples, -256 * width, 256 * 2 * width, 1);
  std::vector<float3> places(samples);
  for (int i = 0; i < samples; ++i) {
    const int* place = &drawn[3 * i];
    places[i] = {place[0] / 256.0f, place[1] / 256.0f, place[2] / 256.0f};
  }
  return places;
}

// A texture over its own array.
class Texture {
 public:
  Texture(const Case& c, const std::vector<float>& texels) : kind(c) {
    const auto format = cudaCreateChannelDesc<float>();
    CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(width, height, c.volume ? depth : 0)));
    cudaMemcpy3DParms copy{};
    copy.srcPtr = make_cudaPitchedPtr(const_cast<float*>(texels.data()), width * sizeof(float), width, height);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(width, height, c.volume ? depth : 1);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));

    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc how{};
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = c.mode;
    how.filterMode = c.filter;
    how.normalizedCoords = c.normalized;
    CHECK(cudaCreateTextureObject(&object, &resource, &how, nullptr));
  }
  ~Texture() {
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFreeArray(array));
  }
  Texture(const Texture&) = delete;

  std::vector<float> samplesAt(std::vector<float3> places) const {
    if (kind.normalized) {
      for (float3& place : places) place = {place.x / width, place.y / height, place.z / depth};
    }
    DeviceArray<float3> where(places);
    DeviceArray<float> results(samples);
    sample<<<samples / block, block>>>(object, kind.volume, where, results);
    CHECK(cudaGetLastError());
    return results.download();
  }

  bool samplesAreRight(const std::vector<float>& samples, const std::vector<float>& texels,
                       const std::vector<float3>& places) const {
    std::vector<double> expected;
    for (const float3& place : places) expected.push_back(sampleOnHost(kind, texels, place));
    const double tolerance = kind.filter == cudaFilterModePoint ? 0 : kind.volume ? 3 * rounding : 2 * rounding;
    return close(kind.name, samples, expected, tolerance);
  }

  const char* name() const { return kind.name; }

 private:
  const Case& kind;
  cudaArray_t array;
  cudaTextureObject_t object;
};

// Textures over memory that the program allocated itself: rows of bytes, and a line of integers.
bool plainMemoryReads() {
  std::vector<uchar4> bytes(width * height);
  const auto ints = randomInts(width * height, -1000000, 1000000, 3);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = {(unsigned char)i, (unsigned char)(3 * i), 0, 255};
  DeviceArray<int> line(ints);
  uchar4* rows;
  size_t pitch;
  CHECK(cudaMallocPitch(&rows, &pitch, width * sizeof(uchar4), height));
  CHECK(cudaMemcpy2D(rows, pitch, bytes.data(), width * sizeof(uchar4), width * sizeof(uchar4), height,
                     cudaMemcpyHostToDevice));
  cudaResourceDesc ofRows{}, ofLine{};
  ofRows.resType = cudaResourceTypePitch2D;
  ofRows.res.pitch2D = {rows, cudaCreateChannelDesc<uchar4>(), width, height, pitch};
  ofLine.resType = cudaResourceTypeLinear;
  ofLine.res.linear = {line, cudaCreateChannelDesc<int>(), ints.size() * sizeof(int)};
  cudaTextureDesc asFractions{}, asIs{};
  asFractions.readMode = cudaReadModeNormalizedFloat;
  cudaTextureObject_t byteTexture, intTexture;
  CHECK(cudaCreateTextureObject(&byteTexture, &ofRows, &asFractions, nullptr));
  CHECK(cudaCreateTextureObject(&intTexture, &ofLine, &asIs, nullptr));

  DeviceArray<float4> fractions(bytes.size());
  DeviceArray<int> fetched(ints.size());
  readPlain<<<height, width>>>(byteTexture, intTexture, fractions, fetched);
  CHECK(cudaGetLastError());
  bool ok = same("fetched", fetched.download(), std::vector<int>(ints.rbegin(), ints.rend()));
  const auto got = fractions.download();
  for (size_t i = 0; i < bytes.size() && ok; ++i) {
    ok = close("fractions", std::vector<float>{got[i].x, got[i].y, got[i].z, got[i].w},
               std::vector<float>{bytes[i].x / 255.0f, bytes[i].y / 255.0f, 0, 1}, 1e-6);
  }
  CHECK(cudaDestroyTextureObject(byteTexture));
  CHECK(cudaDestroyTextureObject(intTexture));
  CHECK(cudaFree(rows));
  return ok;
}

int main() {
  const auto texels = randomFloats(width * height * depth, lowest, highest, 2);
  const auto places = randomPlaces();
  std::vector<std::unique_ptr<Texture>> textures;
  std::vector<std::vector<float>> before;
  bool ok = true;
  for (const Case& c : cases) {
    textures.push_back(std::make_unique<Texture>(c, texels));
    before.push_back(textures.back()->samplesAt(places));
    ok &= textures.back()->samplesAreRight(before.back(), texels, places);
  }
  ok &= plainMemoryReads();
  pausePoint();
  for (size_t i = 0; i < textures.size(); ++i)
    ok &= same(textures[i]->name(), textures[i]->samplesAt(places), before[i]);
  return verdict("texture-filter", ok);
}
