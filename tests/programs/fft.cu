// A radix-2 Stockham FFT, which needs no bit reversal: one launch per stage, from one array to another. The reference is the definition in
// double precision; each stage adds an error of about one unit in the last place to values up to the square root of the length.
#include "program.h"
#include "random-numbers.h"

#include <complex>

constexpr int logCount = 11, count = 1 << logCount, block = 256;
constexpr double tolerance = 1e-4;

// Combines transforms of length `half` to transforms of twice that. `sign` is -1 for the forward and 1 for the inverse transform.
__global__ void joinHalves(const float2* from, float2* to, int half, float sign) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int k = i & (half - 1);
  float sine, cosine;
  sincospif(sign * k / half, &sine, &cosine);
  const float2 even = from[i], odd = from[i + count / 2];
  const float2 turned = {odd.x * cosine - odd.y * sine, odd.x * sine + odd.y * cosine};
  const int place = 2 * (i - k) + k;
  to[place] = {even.x + turned.x, even.y + turned.y};
  to[place + half] = {even.x - turned.x, even.y - turned.y};
}

__global__ void scale(float2* values, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = {values[i].x * factor, values[i].y * factor};
}

// Transforms `values`; `other` is scratch. Returns the array that holds the result.
float2* transform(float2* values, float2* other, float sign) {
  for (int half = 1; half < count; half *= 2) {
    joinHalves<<<count / 2 / block, block>>>(values, other, half, sign);
    std::swap(values, other);
  }
  CHECK(cudaGetLastError());
  return values;
}

// The real parts, then the imaginary ones.
std::vector<float> download(const float2* device) {
  std::vector<float2> values(count);
  CHECK(cudaMemcpy(values.data(), device, count * sizeof(float2), cudaMemcpyDeviceToHost));
  std::vector<float> parts(2 * count);
  for (int i = 0; i < count; ++i) {
    parts[i] = values[i].x;
    parts[count + i] = values[i].y;
  }
  return parts;
}

std::vector<double> transformOnHost(const std::vector<float>& parts) {
  std::vector<std::complex<double>> roots(count);
  for (int i = 0; i < count; ++i) roots[i] = std::polar(1.0, -2 * std::acos(-1.0) * i / count);
  std::vector<double> result(2 * count);
  for (int k = 0; k < count; ++k) {
    std::complex<double> sum = 0;
    for (int i = 0; i < count; ++i) {
      sum += std::complex<double>(parts[i], parts[count + i]) * roots[size_t(i) * k % count];
    }
    result[k] = sum.real();
    result[count + k] = sum.imag();
  }
  return result;
}

int main() {
  const auto input = randomFloats(2 * count, -1, 1, 1);
  std::vector<float2> complexInput(count);
  for (int i = 0; i < count; ++i) complexInput[i] = {input[i], input[count + i]};
  DeviceArray<float2> first(complexInput), second(count);

  float2* const spectrum = transform(first, second, -1);
  const auto forth = download(spectrum);
  pausePoint();
  float2* const again = transform(spectrum, spectrum == first ? second : first, 1);
  scale<<<count / block, block>>>(again, 1.0f / count);
  CHECK(cudaGetLastError());
  return verdict("fft", close("spectrum", forth, transformOnHost(input), tolerance) &
                            close("signal", download(again), input, tolerance));
}
