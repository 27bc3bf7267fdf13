// Every family of calls from a hundred threads at once, each with its own objects: no thread sees another one's results or errors,
// and none waits for ever. Each goes through all families repeatedly, in a new random order each time, until SECONDS have passed
// since the pause and every family has been used.
//   many-families [SECONDS [THREADS [SEED [FAMILY...]]]]    all families below if none is named, except imports, which needs another
//                                                           process; `all` includes it
#include <chrono>
#include <thread>

#include "families/arrays.h"
#include "families/blas.h"
#include "families/code.h"
#include "families/contexts.h"
#include "families/graphs.h"
#include "families/imports.h"
#include "families/launches.h"
#include "families/memory.h"
#include "families/order.h"

namespace {

using namespace families;

struct Family {
  const char* name;
  bool (*use)(const Place&);
};

#define FAMILY(name) Family{#name, name}
constexpr Family known[] = {
    FAMILY(memory),   FAMILY(pool),          FAMILY(sharedPool),   FAMILY(pinned),        FAMILY(managed),
    FAMILY(batches),  FAMILY(prefetched),    FAMILY(virtualMemory), FAMILY(errors),       FAMILY(events),
    FAMILY(words),    FAMILY(hostFunctions), FAMILY(callbacks),    FAMILY(threadStreams), FAMILY(captures),
    FAMILY(graphs),   FAMILY(updatedGraphs), FAMILY(graphMemory),  FAMILY(deviceGraphs),  FAMILY(conditionalGraphs),
    FAMILY(textures), FAMILY(surfaces),      FAMILY(userObjects),  FAMILY(modules),       FAMILY(linked),
    FAMILY(contexts), FAMILY(references),    FAMILY(codeLibraries), FAMILY(greenContexts), FAMILY(peers),
    FAMILY(handles),  FAMILY(blas),          FAMILY(clusters),     FAMILY(followingLaunches), FAMILY(deviceLaunches),
    FAMILY(tensorMaps), FAMILY(sparseArrays), FAMILY(logs),        FAMILY(graphsAcross),
    FAMILY(hostPhysical), FAMILY(imports)};

using Clock = std::chrono::steady_clock;

std::atomic<bool> ok{true}, goesOn{true};
std::vector<Family> chosen;
std::atomic<unsigned> used[std::size(known)];

void work(int thread, uint64_t seed) {
  uint64_t state = seed * 1000 + static_cast<uint64_t>(thread);
  auto draw = [&](size_t below) {  // Knuth's linear congruential generator, MMIX
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % below;
  };
  std::vector<size_t> order(chosen.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int round = 0;;) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draw(i)]);
    for (size_t family : order) {
      if (!goesOn || !ok) return;
      if (!chosen[family].use(Place(thread, round++))) {
        std::fprintf(stderr, "%s, thread %d, round %d\n", chosen[family].name, thread, round);
        ok = false;
      }
      ++used[family];
    }
  }
}

unsigned leastUsed() { return *std::min_element(used, used + chosen.size()); }

}  // namespace

int main(int argc, char** argv) {
  if (isChild(argc, argv, "give")) return give(parentOf(argv));
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const int count = argc > 2 ? std::atoi(argv[2]) : 100;
  const uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const std::vector<std::string> names(argv + std::min(argc, 4), argv + argc);
  auto isNamed = [&](const Family& family) { return std::find(names.begin(), names.end(), family.name) != names.end(); };
  const bool isAll = names == std::vector<std::string>{"all"};
  auto needsOther = [](const Family& family) { return family.use == imports; };
  for (const Family& family : known)
    if (isAll || isNamed(family) || (names.empty() && !needsOther(family))) chosen.push_back(family);
  if (std::any_of(chosen.begin(), chosen.end(), needsOther)) giver = std::make_unique<Giver>();
  CHECK(cudaFree(nullptr));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i, seed);
  pausePoint();
  for (const auto end = Clock::now() + std::chrono::duration<double>(seconds); ok && (Clock::now() < end || leastUsed() == 0);)
    usleep(10000);
  goesOn = false;
  for (auto& thread : threads) thread.join();
  unsigned long long uses = 0;
  for (const auto& family : used) uses += family;
  std::fprintf(stderr, "%d threads have used %zu families %llu times, each at least %u times\n", count, chosen.size(), uses, leastUsed());
  CHECK(cudaDeviceSynchronize());
  if (giver != nullptr) ok = giver->end() && ok;
  return verdict("many-families", ok);
}
