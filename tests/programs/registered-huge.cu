// Parts of huge pages of a shared file are registered, unregistered and registered again: each time kernels can access them.
#include <sys/mman.h>

#include "program.h"

namespace {

constexpr size_t pageBytes = size_t{2} << 20, count = pageBytes / 2 / sizeof(unsigned);  // of a part

__global__ void add(unsigned* values, unsigned value) { values[blockIdx.x * blockDim.x + threadIdx.x] += value; }

unsigned* mapHugePages() {
  const int file = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
  if (file < 0 || ftruncate(file, 2 * pageBytes) != 0) return nullptr;
  void* memory = mmap(nullptr, 2 * pageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<unsigned*>(memory);
}

bool isReached(unsigned* part, unsigned expected) {
  unsigned* onDevice = nullptr;
  CHECK(cudaHostGetDevicePointer(&onDevice, part, 0));
  add<<<count / 256, 256>>>(onDevice, 1);
  CHECK(cudaDeviceSynchronize());
  return EXPECT(part[0] == expected) & EXPECT(part[count - 1] == expected);
}

}  // namespace

int main() {
  unsigned* memory = mapHugePages();
  if (memory == nullptr) return notHere;  // the system has no free huge page
  unsigned* const middle = memory + count + count / 2;  // the end of one page, and the beginning of the next
  bool ok = true;
  for (unsigned* part : {memory, memory, middle}) {
    CHECK(cudaHostRegister(part, count * sizeof(unsigned), cudaHostRegisterMapped));
    const unsigned before = part[0];
    std::fill(part, part + count, before);
    ok &= isReached(part, before + 1);
    if (part == middle) pausePoint();
    ok &= isReached(part, before + 2);
    CHECK(cudaHostUnregister(part));
    ok &= EXPECT(part[count / 2] == before + 2);
  }
  return verdict("registered-huge", ok);
}
