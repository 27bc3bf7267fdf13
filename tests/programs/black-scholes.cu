// Prices European calls and puts with the Black-Scholes formula, and checks them against double precision on the CPU and put-call parity.
// In single precision, prices of tens are accurate to a few parts in a hundred thousand.
#include "bench.h"
#include "random-numbers.h"

constexpr int options = 20000, block = 128;
constexpr double tolerance = 5e-5;
constexpr float rate = 0.02f, volatility = 0.3f;

__global__ void price(const float* spot, const float* strike, const float* years, float* call, float* put, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float deviation = volatility * sqrtf(years[i]);
  const float d1 = (logf(spot[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / deviation;
  const float d2 = d1 - deviation;
  const float discounted = strike[i] * expf(-rate * years[i]);
  call[i] = spot[i] * normcdff(d1) - discounted * normcdff(d2);
  put[i] = discounted * normcdff(-d2) - spot[i] * normcdff(-d1);
}

double normalDistribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

double callOnHost(double spot, double strike, double years) {
  const double deviation = double(volatility) * std::sqrt(years);
  const double d1 = (std::log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / deviation;
  return spot * normalDistribution(d1) - strike * std::exp(-double(rate) * years) * normalDistribution(d1 - deviation);
}

// The market data, each a vector of `count`.
struct Market {
  explicit Market(int count)
      : spot(randomFloats(count, 5, 30, 1)),
        strike(randomFloats(count, 1, 100, 2)),
        years(randomFloats(count, 0.25f, 10, 3)) {}
  std::vector<float> spot, strike, years;
};

// The SDK sample's four million options, priced repeatedly as the sample does.
int measure(const Bench& bench) {
  const int count = bench.size(4000000, options), rounds = bench.size(64, 2);
  const Market market(count);
  DeviceArray<float> spot(count), strike(count), years(count), call(count), put(count);
  std::vector<float> calls(count), puts(count);
  bench.steady(15, [&] {
    spot.copyIn(market.spot);
    strike.copyIn(market.strike);
    years.copyIn(market.years);
    for (int i = 0; i < rounds; ++i) price<<<blocksFor(count, block), block>>>(spot, strike, years, call, put, count);
    CHECK(cudaGetLastError());
    call.copyOut(calls);
    put.copyOut(puts);
  });
  calls.insert(calls.end(), puts.begin(), puts.end());
  return bench.digest(calls);
}

int main(int argc, char** argv) {
  if (const Bench bench{argc, argv}) return measure(bench);

  const auto [spot, strike, years] = Market(options);
  DeviceArray<float> deviceSpot(spot), deviceStrike(strike), deviceYears(years), call(options), put(options);
  const int half = options / 2;
  price<<<blocksFor(half, block), block>>>(deviceSpot, deviceStrike, deviceYears, call, put, half);
  CHECK(cudaGetLastError());
  pausePoint();
  price<<<blocksFor(half, block), block>>>(deviceSpot + half, deviceStrike + half, deviceYears + half, call + half,
                                           put + half, half);
  CHECK(cudaGetLastError());

  std::vector<double> expectedCall(options), expectedPut(options);
  for (int i = 0; i < options; ++i) {
    expectedCall[i] = callOnHost(spot[i], strike[i], years[i]);
    expectedPut[i] = expectedCall[i] - spot[i] + strike[i] * std::exp(-double(rate) * years[i]);
  }
  return verdict("black-scholes", close("call", call.download(), expectedCall, tolerance) &
                                      close("put", put.download(), expectedPut, tolerance));
}
