// Random histories over every kind of object that a session has, with pauses at random steps; the program knows the expected state of
// all objects, and at the end prints a digest of everything that it has read: the same for a seed, whatever happened in between.
//   random-history SEED STEPS [PAUSES]
#include <random>

#include "history/arrays.h"
#include "history/code.h"
#include "history/events.h"
#include "history/graphs.h"
#include "history/memory-kinds.h"

namespace history {

World::World(unsigned seed) : random(seed) {
  CHECK(cudaGetDeviceCount(&devices));
  devices = std::min(devices, 2);
  for (int slot = 0; slot < devices * slotsOfDevice; ++slot) {
    streams.push_back(nullptr);
    if (slot % slotsOfDevice != 0) replaceStream(slot);
  }
  for (int device = 0; device < devices; ++device)
    for (bool isConstant : {false, true}) objects.push_back(std::make_shared<VariableMemory>(*this, device, isConstant));
}

// Destroys the objects in random order, while streams still have work.
World::~World() {
  while (!objects.empty()) {
    std::swap(objects[pick(objects.size())], objects.back());
    objects.pop_back();
  }
  for (auto stream : streams)
    if (stream != nullptr) CHECK(cudaStreamDestroy(stream));
}

cudaStream_t World::enter(int slot) {
  CHECK(cudaSetDevice(deviceOf(slot)));
  return streams[slot];
}

void World::order(int before, int after) {
  if (before == after) return;
  cudaEvent_t event;
  cudaStream_t stream = enter(before);
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaStreamWaitEvent(enter(after), event, 0));
  CHECK(cudaEventDestroy(event));
}

// Destroys the stream while its work is pending; another one replaces it.
void World::replaceStream(int slot) {
  if (slot % slotsOfDevice == 0) return;
  if (streams[slot] != nullptr) {
    wait(slot);
    CHECK(cudaStreamDestroy(streams[slot]));
  }
  int least, greatest;
  CHECK(cudaSetDevice(deviceOf(slot)));
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(cudaStreamCreateWithPriority(&streams[slot], oneIn(2) ? cudaStreamDefault : cudaStreamNonBlocking, oneIn(2) ? least : greatest));
}

void World::wait() {
  const int slot = pickSlot(pickDevice());
  cudaStream_t stream = enter(slot);
  switch (pick(3)) {
    case 0: CHECK(cudaDeviceSynchronize()); return;
    case 1: CHECK(cudaStreamSynchronize(stream)); return;
    default: {
      cudaError_t state = cudaStreamQuery(stream);
      if (state != cudaErrorNotReady) CHECK(state);
    }
  }
}

void World::callHost(int slot) {
  auto count = [](void* ran) { ++*static_cast<std::atomic<uint32_t>*>(ran); };
  CHECK(cudaLaunchHostFunc(enter(slot), count, &ran));
  ++called;
}

void World::make() {
  static constexpr decltype(&makeMemory) makers[] = {makeMemory, makeMemory, makeMemory, makeMemory, makeArray,
                                                     makeCode,   makeCode,   makeGraph,  makeEvents, makePointers};
  objects.push_back(makers[pick(std::size(makers))](*this));
}

void World::step() {
  switch (pick(16)) {
    case 0:
    case 1:
    case 2:
      if (objects.size() < 30) return make();
      [[fallthrough]];
    case 3:
      if (objects.size() > 10) objects.erase(objects.begin() + 2 * devices + pick(objects.size() - 2 * devices));
      return;
    case 4: return wait();
    case 5: return oneIn(3) ? replaceStream(pickSlot(pickDevice())) : callHost(pickSlot(pickDevice()));
    default: return objects[pick(objects.size())]->act();
  }
}

bool World::isRight(Digest& digest) {
  bool ok = true;
  for (auto& object : objects) ok &= object->isRight(digest);
  for (int device = 0; device < devices; ++device) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaDeviceSynchronize());
  }
  digest.add(called);
  return ok & EXPECT(ran == called);
}

}  // namespace history

int main(int argc, char** argv) {
  const unsigned seed = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  const unsigned steps = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 100;
  const unsigned pauses = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1;
  std::mt19937 positions(~seed);  // separate random numbers, so that the history is the same with other pauses
  std::vector<unsigned> pausesAt(steps);
  for (unsigned i = 0; i < pauses; ++i) ++pausesAt[positions() % steps];

  history::World world(seed);
  history::Digest digest;
  bool ok = true;
  for (unsigned step = 0; step < steps && ok; ++step) {
    for (unsigned i = 0; i < pausesAt[step]; ++i) pausePoint();
    world.step();
    if (step % 64 == 63) ok = world.isRight(digest);
  }
  ok = ok && world.isRight(digest);
  if (!ok) std::fprintf(stderr, "the history of seed %u is wrong\n", seed);
  std::printf("digest %016llx\n", static_cast<unsigned long long>(digest.value()));
  return verdict("random-history", ok);
}
