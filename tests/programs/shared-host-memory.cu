// Host memory that two processes and their GPUs share: a file in /dev/shm that both have mapped and registered, and physical memory of the
// host that one has made and the other imported. Their kernels run concurrently and take turns with a word in it; each process reads what
// the other one's kernel has written.
#include <sys/mman.h>

#include "driver-entry.h"
#include "processes.h"

constexpr size_t piece = 2 << 20;
constexpr unsigned count = 3000, rounds = 4, turns = 2 * rounds;

struct Shared {
  unsigned turn;
  unsigned values[count];
};
static_assert(sizeof(Shared) < piece);

// In every second turn, starting with `turn`, triples each value and adds `own`. The two processes' kernels differ in `own`, and by one
// turn.
__global__ void takeTurns(Shared* shared, unsigned turn, unsigned own) {
  volatile unsigned* now = &shared->turn;
  volatile unsigned* values = shared->values;
  for (unsigned end = turn + turns; turn < end; turn += 2) {
    if (threadIdx.x == 0)
      while (*now != turn) {
      }
    __syncthreads();
    __threadfence_system();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) values[i] = values[i] * 3 + own;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) *now = turn + 1;
  }
}

bool holds(const char* what, const Shared& shared, unsigned expected) {
  return same(what, std::vector<unsigned>(shared.values, shared.values + count), std::vector<unsigned>(count, expected));
}

__global__ void put(Shared* shared, unsigned value) {
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) shared->values[i] = value;
}

// The expected value after all turns, if `first` begins.
unsigned after(unsigned value, unsigned first, unsigned second) {
  for (unsigned round = 0; round < rounds; ++round) value = (value * 3 + first) * 3 + second;
  return value;
}

// ------------------------------------------------------------------ a file

constexpr size_t fileBytes = 3 * 4096 + piece;  // the shared memory is behind its first pages
constexpr size_t place = 2 * 4096;

std::string pathOf(pid_t process) { return "/dev/shm/vgpu-shared-host-memory-" + std::to_string(process); }

class File {
 public:
  File(const std::string& path, bool isNew) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | (isNew ? O_CREAT | O_EXCL : 0), 0600);
    if (file < 0 || (isNew && ftruncate(file, fileBytes) != 0)) std::perror(path.c_str()), std::exit(1);
    memory = static_cast<char*>(mmap(nullptr, fileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    if (memory == MAP_FAILED) std::perror("mmap"), std::exit(1);
    close(file);
    CHECK(cudaHostRegister(memory + place, sizeof(Shared), cudaHostRegisterDefault));
  }
  Shared& onHost() const { return *reinterpret_cast<Shared*>(memory + place); }
  Shared* onDevice() const {
    void* address = nullptr;
    CHECK(cudaHostGetDevicePointer(&address, memory + place, 0));
    return static_cast<Shared*>(address);
  }
  void end() const {
    CHECK(cudaHostUnregister(memory + place));
    munmap(memory, fileBytes);
  }

 private:
  char* memory;
};

// ------------------------------------------------------------------ physical memory

bool isPhysicalHere() {
  int supported = 0;
  CALL(cuDeviceGetAttribute, &supported, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
  return supported != 0;
}

class Physical {
 public:
  explicit Physical(CUmemGenericAllocationHandle handle) : handle(handle) {
    CALL(cuMemAddressReserve, &address, piece, 0, 0, 0);
    CALL(cuMemMap, address, piece, 0, handle, 0);
    for (CUmemLocation location : {CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CUmemLocation{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}}) {
      CUmemAccessDesc access{location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      CALL(cuMemSetAccess, address, piece, &access, 1);
    }
  }
  static CUmemGenericAllocationHandle make() {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle made = 0;
    CALL(cuMemCreate, &made, piece, &properties, 0);
    return made;
  }
  static CUmemGenericAllocationHandle import(int descriptor) {
    CUmemGenericAllocationHandle found = 0;
    void* passed = reinterpret_cast<void*>(intptr_t(descriptor));
    CALL(cuMemImportFromShareableHandle, &found, passed, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    return found;
  }
  int exported() const {
    int descriptor = -1;
    CALL(cuMemExportToShareableHandle, &descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    return descriptor;
  }
  // Whether the memory's location is NUMA node 0 of the host.
  bool isHosts() const {
    CUmemAllocationProp properties{};
    CALL(cuMemGetAllocationPropertiesFromHandle, &properties, handle);
    return EXPECT(properties.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA) & EXPECT(properties.location.id == 0);
  }
  Shared* shared() const { return reinterpret_cast<Shared*>(address); }
  void end() const {
    CALL(cuMemUnmap, address, piece);
    CALL(cuMemRelease, handle);
    CALL(cuMemAddressFree, address, piece);
  }

 private:
  CUmemGenericAllocationHandle handle;
  CUdeviceptr address = 0;
};

// ------------------------------------------------------------------ the two processes

constexpr unsigned parents = 1, childs = 2;  // each one's summand

void play(Shared* shared, unsigned firstTurn, unsigned own) {
  takeTurns<<<1, 128>>>(shared, firstTurn, own);
  CHECK(cudaGetLastError());
}

int child(const Peer& parent, int descriptor) {
  CHECK(cudaFree(nullptr));
  const File file(pathOf(parent.receive<pid_t>()), false);
  const bool hasPhysical = isPhysicalHere();
  bool ok = holds("what the parent has written", file.onHost(), 7);
  file.onHost().values[count - 1] = 8;
  Physical* physical = nullptr;
  if (hasPhysical) {
    const CUmemGenericAllocationHandle found = Physical::import(descriptor), again = Physical::import(descriptor);
    ok &= EXPECT(found != again);  // of the same memory
    CALL(cuMemRelease, again);
    physical = new Physical(found);
    ok &= physical->isHosts() & holds("physical memory of the parent", *physical->shared(), 70);
  }
  close(descriptor);
  parent.meet();
  for (unsigned turn : {1u, turns + 1}) {
    play(file.onDevice(), turn, childs);
    if (hasPhysical) play(physical->shared(), turn, childs);
    CHECK(cudaDeviceSynchronize());
    parent.meet();  // the program may be suspended here
  }
  file.end();
  parent.meet();
  // The parent has released all of it.
  ok &= !hasPhysical || holds("what only this process has", *physical->shared(), 99);
  if (hasPhysical) {
    takeTurns<<<1, 64>>>(physical->shared(), 0, 0);
    physical->shared()->turn = 0;
    for (unsigned turn = 1; turn < turns; turn += 2) {
      volatile unsigned* now = &physical->shared()->turn;
      while (*now != turn) {
      }
      *now = turn + 1;
    }
    CHECK(cudaDeviceSynchronize());
    ok &= holds("and its GPU", *physical->shared(), 99 * 81);
    physical->end();
  }
  return ok ? 0 : 1;
}

int parent() {
  const std::string path = pathOf(getpid());
  CHECK(cudaFree(nullptr));
  const File file(path, true);
  std::fill_n(file.onHost().values, count, 7);
  int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  Physical* physical = nullptr;
  if (isPhysicalHere()) {
    physical = new Physical(Physical::make());
    std::fill_n(physical->shared()->values, count, 70);
    close(descriptor);
    descriptor = physical->exported();
  }
  const Child other("child", descriptor);
  close(descriptor);
  other.send(getpid());
  other.meet();
  bool ok = EXPECT(file.onHost().values[count - 1] == 8);
  file.onHost().values[count - 1] = 7;
  unsigned expected = 7, expectedPhysical = 70;
  for (unsigned turn : {0u, turns}) {
    play(file.onDevice(), turn, parents);
    if (physical) play(physical->shared(), turn, parents);
    CHECK(cudaDeviceSynchronize());
    expected = after(expected, parents, childs);
    expectedPhysical = after(expectedPhysical, parents, childs);
    if (turn == 0) pausePoint();
    other.meet();
    ok &= holds("a file", file.onHost(), expected);
    if (physical) ok &= physical->isHosts() & holds("physical memory", *physical->shared(), expectedPhysical);
  }
  // A file that is registered afterwards.
  const File since(path + "-since", true);
  unlink((path + "-since").c_str());
  put<<<1, 128>>>(since.onDevice(), 5);
  CHECK(cudaDeviceSynchronize());
  ok &= holds("a file that is registered since", since.onHost(), 5);
  since.end();
  if (physical) {
    std::fill_n(physical->shared()->values, count, 99);
    physical->end();
  }
  unlink(path.c_str());
  other.meet();
  ok &= EXPECT(other.ended()) & holds("what the child has left", file.onHost(), expected);
  file.end();
  return verdict("shared-host-memory", ok);
}

int main(int argc, char** argv) { return isChild(argc, argv, "child") ? child(parentOf(argv), inheritedBy(argv)) : parent(); }
