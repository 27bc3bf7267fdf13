// Random programs whose order is defined only by CUDA's rules: kernels, fills, copies, host functions and graphs over memory of every
// kind, in the legacy, the per-thread, blocking and non-blocking streams of up to two devices. Vector clocks (orders/clocks.h) know
// which work is ordered already; before each piece of work only the missing waits are added. All bytes that are read must be as if the
// work had been executed in sequence.
//   random-orders SEED PROGRAMS [FILE]
// Each program has its own seed, which is printed if it fails: `random-orders ITS_SEED 1` repeats it. If the seed is a multiple of 4,
// it has two or three threads at once, each with its own streams and memory. With FILE the programs are repeated until it exists. Of each
// device's six streams, numbered consecutively, the first is the legacy stream, then the per-thread one, two blocking and two non-blocking.
#include <thread>

#include "orders/graphs.h"

namespace orders {
namespace {

// ---- the host's own steps

void touch(World& world, int) {
  Buffer* buffer = world.find([](Buffer& buffer) { return buffer.is().isHosts; });
  if (buffer == nullptr) return;
  world.requireWriteOfHost(*buffer);
  for (int i = world.random.pick(buffer->bytes); i < buffer->bytes; i += 1 + world.random.pick(500))
    buffer->data[i] = buffer->model[i] = world.byte();
}
void compareOne(World& world, int) { world.compare(world.any()); }
void synchronize(World& world, int stream) { world.order.synchronize(stream); }
void record(World& world, int stream) { world.order.record(stream); }
void wait(World& world, int stream) { world.order.waitForAny(stream); }
void replaceStream(World& world, int stream) { world.order.replace(stream); }
void replaceBuffer(World& world, int) {
  Buffer& buffer = world.any();
  world.remove(buffer);
  world.make(buffer);
}

// Prefetches managed memory, whose bytes must not change.
void prefetch(World& world, int stream) {
  Buffer* buffer = world.findMovable();
  if (buffer == nullptr || world.order.isLegacy(stream)) return;
  cudaMemLocation location{};
  location.type = world.random.oneIn(2) ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  if (location.type == cudaMemLocationTypeDevice) location.id = world.order.deviceOf(stream);
  const int offset = world.random.pick(buffer->bytes), bytes = 1 + world.random.pick(buffer->bytes - offset);
  world.requireRead(stream, *buffer, false);
  CHECK(cudaMemPrefetchAsync(buffer->data + offset, bytes, location, 0, world.order.enter(stream)));
  buffer->noteRead("prefetch", world.order.postWithin(stream));
}
void advise(World& world, int) {
  constexpr cudaMemoryAdvise advices[] = {cudaMemAdviseSetReadMostly, cudaMemAdviseUnsetReadMostly, cudaMemAdviseSetPreferredLocation,
                                          cudaMemAdviseUnsetPreferredLocation, cudaMemAdviseSetAccessedBy};
  Buffer* buffer = world.findMovable();
  if (buffer == nullptr) return;
  cudaMemLocation location{};
  location.type = cudaMemLocationTypeDevice;
  location.id = world.random.pick(world.devices);
  CHECK(cudaMemAdvise(buffer->data, buffer->bytes, advices[world.random.pick(std::size(advices))], location));
}
void setPool(World& world, int) {
  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, world.random.pick(world.devices)));
  CHECK(cudaMemPoolTrimTo(pool, world.random.oneIn(2) ? 0 : 100'000));
  uint64_t threshold = world.random.oneIn(2) ? 0 : ~0ull;
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

struct Operation {
  int weight;
  void (*run)(World&, int stream);
};
// Work, some of it as graphs; ordering of streams and the host; and creation and destruction of objects.
constexpr Operation operations[] = {
    {160, giveWork}, {6, giveSequence}, {4, giveBranches},
    {4, record},     {4, wait},         {4, synchronize},    {6, touch},         {10, compareOne},
    {2, prefetch},   {2, advise},       {12, replaceBuffer}, {2, replaceStream}, {1, setPool},
};

bool runThread(unsigned seed, int devices, int thread, bool isAlone, bool pauses) {
  constexpr int steps = 150;
  World world(seed * threadsAtMost + thread, devices, thread, isAlone);
  int burst = 0, stream = 0;  // number of steps that follow in one stream only
  for (int step = 0; step < steps && world.ok; ++step) {
    if (pauses && step == steps / 2) pausePoint();
    if (burst > 0) {
      --burst;
      giveWork(world, stream);
      continue;
    }
    stream = world.order.pickStream();
    if (world.random.oneIn(40)) burst = world.random.pick(60);
    pickRow(world.random, operations).run(world, stream);
  }
  world.finish();
  if (!world.ok) std::fprintf(stderr, "program %u, thread %d, is wrong\n", seed, thread);
  return world.ok;
}

bool runProgram(unsigned seed, int devices, bool pauses) {
  const int threads = seed % 4 != 0 ? 1 : 2 + seed / 4 % (threadsAtMost - 1);
  if (threads == 1) return runThread(seed, devices, 0, true, pauses);
  std::atomic<bool> ok{true};
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread)
    running.emplace_back([&, thread] {
      if (!runThread(seed, devices, thread, false, pauses && thread == 0)) ok = false;
    });
  for (auto& thread : running) thread.join();
  return ok;
}

}  // namespace
}  // namespace orders

int main(int argc, char** argv) {
  const unsigned first = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  const unsigned programs = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 20;
  const char* end = argc > 3 ? argv[3] : nullptr;
  int devices;
  CHECK(cudaGetDeviceCount(&devices));
  devices = std::min(devices, 2);
  bool ok = true;
  do {
    for (unsigned seed = first; seed < first + programs && ok; ++seed) ok = orders::runProgram(seed, devices, seed == first);
  } while (ok && end != nullptr && access(end, F_OK) != 0);
  return verdict("random-orders", ok);
}
