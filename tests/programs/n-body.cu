// Gravity among 128 bodies over 200 steps, one launch each; the pause is after the hundredth. CPU and device compute the same steps in
// single precision but contract and round differently (rsqrtf has an error of 2 units in the last place); with softening and such short
// steps the paths agree within one part in a thousand.
#include "program.h"
#include "random-numbers.h"

constexpr int bodies = 128, steps = 200, block = 64;
constexpr float step = 1e-3f, softening = 0.05f;
constexpr double tolerance = 1e-3;

struct Body {
  float x, y, z, mass;
};

struct Velocity {
  float x, y, z;
};

// Adds the attraction of `body` by `other` to `pull`.
__host__ __device__ void addPull(const Body& body, const Body& other, Velocity& pull) {
  const float dx = other.x - body.x, dy = other.y - body.y, dz = other.z - body.z;
  const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening * softening);
  const float strength = other.mass * inverse * inverse * inverse;
  pull.x += dx * strength;
  pull.y += dy * strength;
  pull.z += dz * strength;
}

__host__ __device__ void advance(Body& body, Velocity& velocity, const Velocity& pull) {
  velocity.x += pull.x * step;
  velocity.y += pull.y * step;
  velocity.z += pull.z * step;
  body.x += velocity.x * step;
  body.y += velocity.y * step;
  body.z += velocity.z * step;
}

__global__ void moveBodies(const Body* from, Body* to, Velocity* velocities) {
  __shared__ Body near[block];
  const int i = blockIdx.x * block + threadIdx.x;
  Body body = from[i];
  Velocity pull{0, 0, 0};
  for (int start = 0; start < bodies; start += block) {
    near[threadIdx.x] = from[start + threadIdx.x];
    __syncthreads();
    for (const Body& other : near) addPull(body, other, pull);
    __syncthreads();
  }
  advance(body, velocities[i], pull);
  to[i] = body;
}

void moveOnHost(std::vector<Body>& all, std::vector<Velocity>& velocities) {
  const auto from = all;
  for (int i = 0; i < bodies; ++i) {
    Velocity pull{0, 0, 0};
    for (const Body& other : from) addPull(from[i], other, pull);
    advance(all[i], velocities[i], pull);
  }
}

std::vector<float> coordinates(const std::vector<Body>& all) {
  std::vector<float> values;
  for (const Body& body : all) values.insert(values.end(), {body.x, body.y, body.z});
  return values;
}

int main() {
  const auto place = randomFloats(3 * bodies, -1, 1, 3), mass = randomFloats(bodies, 0.1f, 1, 4);
  std::vector<Body> all(bodies);
  std::vector<Velocity> velocities(bodies, Velocity{0, 0, 0});
  for (int i = 0; i < bodies; ++i) all[i] = {place[3 * i], place[3 * i + 1], place[3 * i + 2], mass[i]};
  DeviceArray<Body> even(all), odd(bodies);
  DeviceArray<Velocity> deviceVelocities(velocities);

  for (int i = 0; i < steps; ++i) {
    if (i == steps / 2) pausePoint();
    moveBodies<<<bodies / block, block>>>(i % 2 ? odd : even, i % 2 ? even : odd, deviceVelocities);
    CHECK(cudaGetLastError());
  }
  for (int i = 0; i < steps; ++i) moveOnHost(all, velocities);

  const auto start = place, end = coordinates(all);
  double moved = 0;
  for (size_t i = 0; i < end.size(); ++i) moved = std::fmax(moved, std::fabs(end[i] - start[i]));
  const bool ok = EXPECT(moved > 100 * tolerance) & close("coordinates", coordinates(even.download()), end, tolerance);
  return verdict("n-body", ok);
}
