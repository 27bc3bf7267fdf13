// Registered memory that realloc() or mremap() moves before it is unregistered: it keeps its bytes, memory by which it has grown is the
// program's own, and no other pinned memory changes.
#include <malloc.h>
#include <sys/mman.h>

#include <cerrno>
#include <memory>

#include "in-session.h"
#include "program.h"

namespace {

using Word = unsigned long long;
constexpr size_t page = 4096 / sizeof(Word);  // in words, like all sizes here

__global__ void increment(Word* words, size_t count) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) ++words[i];
}

// Different for every word.
Word patternAt(size_t i, unsigned seed) { return i * 0x9e3779b97f4a7c15 + seed; }

void fill(Word* memory, size_t begin, size_t end, unsigned seed) {
  for (size_t i = begin; i < end; ++i) memory[i] = patternAt(i, seed);
}

bool holds(const char* what, const Word* memory, size_t count, unsigned seed, unsigned more = 0) {
  for (size_t i = 0; i < count; ++i) {
    if (memory[i] == patternAt(i, seed) + more) continue;
    std::fprintf(stderr, "%s, word %zu of %zu: %#llx, expected %#llx\n", what, i, count, memory[i], patternAt(i, seed) + more);
    return false;
  }
  return true;
}

// Other pinned memory of the program, beside the memory that moves.
class Pinned {
 public:
  explicit Pinned(size_t count) : count(count) {
    CHECK(cudaMallocHost(&memory, count * sizeof(Word)));
    fill(memory, 0, count, seed);
  }
  ~Pinned() { CHECK(cudaFreeHost(memory)); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  bool isWhole() const { return holds("other pinned memory", memory, count, seed); }

 private:
  static constexpr unsigned seed = 100;
  const size_t count;
  Word* memory = nullptr;
};

struct Way {
  const char* name;
  size_t growth;  // factor by which it grows
  Word* (*allocate)(size_t count);
  Word* (*grow)(Word* memory, size_t count, size_t larger);
  void (*end)(Word* memory, size_t count);
};

Word* mapped(size_t count, int protection) {
  void* memory = mmap(nullptr, count * sizeof(Word), protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::perror("mmap"), std::exit(1);
  return static_cast<Word*>(memory);
}
void unmap(Word* memory, size_t count) { munmap(memory, count * sizeof(Word)); }

// Moves the memory to a reserved address. A session may make that impossible (EFAULT, as for memory in two mappings), also for realloc():
// then the memory is copied.
Word* remapped(Word* memory, size_t count, size_t larger) {
  Word* place = mapped(larger, PROT_NONE);
  const size_t bytes = count * sizeof(Word), largerBytes = larger * sizeof(Word);
  if (mremap(memory, bytes, largerBytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) != MAP_FAILED) return place;
  if (!inSession || errno != EFAULT) std::perror("mremap"), std::exit(1);
  if (mprotect(place, largerBytes, PROT_READ | PROT_WRITE) != 0) std::perror("mprotect"), std::exit(1);
  std::memcpy(place, memory, bytes);
  unmap(memory, count);
  return place;
}

Word* ofMalloc(size_t count) { return static_cast<Word*>(std::malloc(count * sizeof(Word))); }
Word* reallocated(Word* memory, size_t, size_t larger) { return static_cast<Word*>(std::realloc(memory, larger * sizeof(Word))); }
Word* ofMmap(size_t count) { return mapped(count, PROT_READ | PROT_WRITE); }

constexpr Way ways[] = {{"realloc", 3, ofMalloc, reallocated, [](Word* memory, size_t) { std::free(memory); }},
                        {"mremap, larger", 3, ofMmap, remapped, unmap},
                        {"mremap", 1, ofMmap, remapped, unmap}};

class Registered {
 public:
  Registered(const Way& way, size_t count)
      : way(way), count(count), before(count), first(way.allocate(count)), memory(first), after(count) {
    fill(memory, 0, count, seed);
    CHECK(cudaHostRegister(memory, count * sizeof(Word), cudaHostRegisterMapped));
  }
  ~Registered() { way.end(memory, grown); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  bool movesWhole() {
    bool ok = holds("registered", memory, count, seed);
    memory = way.grow(memory, count, grown);
    ok &= holds(way.name, memory, count, seed);
    if (way.allocate == ofMmap)
      for (size_t i = count; i < grown; ++i) ok = ok && EXPECT(memory[i] == 0);
    fill(memory, count, grown, seed);
    return ok & isWhole();
  }
  bool staysWholeUnregistered() {
    cudaHostUnregister(first);  // the registered memory no longer exists: any result is allowed
    cudaGetLastError();
    return isWhole();
  }
  bool isRegisteredAgain() {
    Word* onDevice = nullptr;
    CHECK(cudaHostRegister(memory, grown * sizeof(Word), cudaHostRegisterMapped));
    CHECK(cudaHostGetDevicePointer(&onDevice, memory, 0));
    increment<<<4, 256>>>(onDevice, grown);
    CHECK(cudaDeviceSynchronize());
    bool ok = holds("registered again", memory, grown, seed, 1);
    CHECK(cudaHostUnregister(memory));
    return ok & holds("unregistered again", memory, grown, seed, 1) & before.isWhole() & after.isWhole();
  }

 private:
  bool isWhole() const { return holds(way.name, memory, grown, seed) & before.isWhole() & after.isWhole(); }

  static constexpr unsigned seed = 5;
  const Way& way;
  const size_t count, grown = way.growth * count;
  const Pinned before;
  Word *first, *memory;
  const Pinned after;
};

}  // namespace

int main() {
  mallopt(M_MMAP_THRESHOLD, page * sizeof(Word));  // the C library moves memory that it has mapped, and copies the rest
  CHECK(cudaFree(nullptr));
  std::vector<std::unique_ptr<Registered>> all;
  for (size_t count : {2 * page, 5 * page, 1024 * page})
    for (const Way& way : ways) all.push_back(std::make_unique<Registered>(way, count));
  bool ok = true;
  pausePoint();
  for (auto step : {&Registered::movesWhole, &Registered::staysWholeUnregistered, &Registered::isRegisteredAgain})
    for (auto& each : all) ok &= (*each.*step)();
  return verdict("registered-moved", ok);
}
