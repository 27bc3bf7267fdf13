// The kinds of memory: each allocates, moves and frees its memory in its own way.
#pragma once

#include <sys/mman.h>

#include <algorithm>

#include "memory.h"

namespace history {

inline size_t pickBytes(World& world) {
  static const size_t most[] = {64, 64, 5000, 5000, 70000, 300000, 3000000};
  return 4 + world.pick(most[world.pick(std::size(most))]);
}

struct DeviceMemory : Memory {
  DeviceMemory(World& world, int device, size_t bytes) : Memory(world, device, bytes) {
    world.enter(slot);
    CHECK(cudaMalloc(&data, bytes));
    isPlain = true;
    fillAll();
  }
  ~DeviceMemory() override { CHECK(cudaFree(data)); }
};

// A pool that is destroyed when the last of its memory is freed.
struct Pool {
  explicit Pool(int device) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, device};
    CHECK(cudaMemPoolCreate(&handle, &properties));
    uint64_t threshold = 16 << 20;
    CHECK(cudaMemPoolSetAttribute(handle, cudaMemPoolAttrReleaseThreshold, &threshold));
  }
  ~Pool() { CHECK(cudaMemPoolDestroy(handle)); }
  cudaMemPool_t handle = nullptr;
};

struct PoolMemory : Memory {
  PoolMemory(World& world, int device, size_t bytes) : Memory(world, device, bytes) {
    cudaStream_t stream = world.enter(slot);
    if (auto other = world.pickObject<PoolMemory>([&](auto& one) { return one.device == device; })) pool = other->pool;
    if (!pool && world.oneIn(2)) pool = std::make_shared<Pool>(device);
    CHECK(pool ? cudaMallocFromPoolAsync(&data, bytes, pool->handle, stream) : cudaMallocAsync(&data, bytes, stream));
    fillAll();
  }
  ~PoolMemory() override {
    CHECK(cudaFreeAsync(data, world.enter(slot)));
    if (pool.use_count() == 1) world.wait(slot);
  }
  std::shared_ptr<Pool> pool;  // null: the device's default pool
};

// Memory that the host writes and reads too, after earlier work has ended.
struct HostMemory : Memory {
  using Memory::Memory;
  void act() override {
    if (!world.oneIn(3)) return Memory::act();
    const size_t at = world.pick(bytes()), count = 1 + world.pick(std::min<size_t>(bytes() - at, 5000));
    char* place = use(slot);
    world.wait(slot);
    for (size_t i = at; i < at + count; ++i) {
      if (!EXPECT(static_cast<unsigned char>(place[i]) == wanted[i])) std::exit(1);
      place[i] = static_cast<char>(wanted[i] = static_cast<unsigned char>(world.pick(256)));
    }
  }
};

struct ManagedMemory : HostMemory {
  ManagedMemory(World& world, int device, size_t bytes) : HostMemory(world, device, bytes) {
    world.enter(slot);
    CHECK(cudaMallocManaged(&data, bytes));
    fillAll();
  }
  ~ManagedMemory() override {
    world.wait(slot);
    CHECK(cudaFree(data));
  }
};

// Memory of the default pool of the host, or of managed memory. It is freed behind the device's work with it.
struct SharedPoolMemory : HostMemory {
  // Only in a session, because the emulated device has none.
  static bool exists(int device) {
    int supported = 0;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrHostMemoryPoolsSupported, device));
    return supported != 0;
  }
  SharedPoolMemory(World& world, int device, size_t bytes) : HostMemory(world, device, bytes) {
    cudaStream_t stream = world.enter(slot);
    const auto type = world.oneIn(2) ? cudaMemAllocationTypePinned : cudaMemAllocationTypeManaged;
    cudaMemPool_t pool;
    cudaMemLocation place{};
    place.type = cudaMemLocationTypeHost;
    CHECK(cudaMemGetDefaultMemPool(&pool, &place, type));
    cudaMemAccessDesc access{{cudaMemLocationTypeDevice, device}, cudaMemAccessFlagsProtReadWrite};
    CHECK(cudaMemPoolSetAccess(pool, &access, 1));
    CHECK(cudaMallocFromPoolAsync(&data, bytes, pool, stream));
    fillAll();
  }
  ~SharedPoolMemory() override { CHECK(cudaFreeAsync(data, world.enter(slot))); }
};

struct PinnedMemory : HostMemory {
  PinnedMemory(World& world, int device, size_t bytes) : HostMemory(world, device, bytes) {
    world.enter(slot);
    CHECK(cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    fillAll();
  }
  ~PinnedMemory() override {
    world.wait(slot);
    CHECK(cudaFreeHost(data));
  }
};

// Registered pages of the program, or of a memory file, which other processes might share. They come from mmap: a sanitizer's allocator has
// pages that cannot be registered.
struct RegisteredMemory : HostMemory {
  RegisteredMemory(World& world, int device, size_t bytes) : HostMemory(world, device, bytes), pages((bytes + 4095) / 4096 * 4096) {
    world.enter(slot);
    const int file = pages / 4096 % 2 == 0 ? memfd_create("history", MFD_CLOEXEC) : -1;  // so that the seed's other choices do not change
    if (!EXPECT(file < 0 || ftruncate(file, off_t(pages)) == 0)) std::exit(1);
    data = mmap(nullptr, pages, PROT_READ | PROT_WRITE, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (!EXPECT(data != MAP_FAILED)) std::exit(1);
    CHECK(cudaHostRegister(data, pages, cudaHostRegisterDefault));
    isRead = isWritten = false;  // used by copies only
    fillAll();
  }
  ~RegisteredMemory() override {
    world.wait(slot);
    CHECK(cudaHostUnregister(data));
    munmap(data, pages);
  }
  const size_t pages;  // bytes
};

// Physical memory that is mapped at one of several addresses, and sometimes nowhere.
struct MappedMemory : Memory {
  static constexpr int places = 3;

  MappedMemory(World& world, int device) : Memory(world, device, pieceOf(world, device)) {
    world.enter(slot);
    CUmemAllocationProp properties = propertiesOf(device);
    CALL(cuMemCreate, &handle, bytes(), &properties, 0);
    CALL(cuMemAddressReserve, &base, places * bytes(), 0, 0, 0);
    fillAll();
  }
  ~MappedMemory() override {
    unmap();
    CALL(cuMemRelease, handle);
    CALL(cuMemAddressFree, base, places * bytes());
  }
  void act() override {
    if (world.oneIn(3)) return unmap();
    Memory::act();
  }
  void* address() override {
    if (data != nullptr) return data;
    place = world.pick(places);
    const CUdeviceptr there = base + place * bytes();
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CALL(cuMemMap, there, bytes(), 0, handle, 0);
    CALL(cuMemSetAccess, there, bytes(), &access, 1);
    return data = reinterpret_cast<void*>(there);
  }
  void unmap() {
    if (data == nullptr) return;
    world.wait(slot);
    CALL(cuMemUnmap, base + place * bytes(), bytes());
    data = nullptr;
  }
  static CUmemAllocationProp propertiesOf(int device) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    return properties;
  }
  static size_t pieceOf(World& world, int device) {
    size_t bytes = 0;
    CUmemAllocationProp properties = propertiesOf(device);
    world.enter(world.pickSlot(device));
    CALL(cuMemGetAllocationGranularity, &bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    return bytes;
  }

  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  size_t place = 0;
};

// A variable of the program's own module.
__device__ uint32_t deviceWords[3000];
__constant__ uint32_t constantWords[500];
struct VariableMemory : Memory {
  VariableMemory(World& world, int device, bool isConstant)
      : Memory(world, device, isConstant ? sizeof constantWords : sizeof deviceWords) {
    world.enter(slot);
    CHECK(isConstant ? cudaGetSymbolAddress(&data, constantWords) : cudaGetSymbolAddress(&data, deviceWords));
    isRead = isWritten = !isConstant;
    fillAll();
  }
};

inline std::shared_ptr<Memory> makeDeviceMemory(World& world, int device, size_t bytes) {
  return std::make_shared<DeviceMemory>(world, device, bytes);
}

inline std::shared_ptr<Object> makeMemory(World& world) {
  const int device = world.pickDevice();
  const size_t bytes = pickBytes(world);
  switch (world.pick(12)) {
    case 0:
    case 1: return std::make_shared<PoolMemory>(world, device, bytes);
    case 2:
    case 3: return std::make_shared<ManagedMemory>(world, device, bytes);
    case 4: return std::make_shared<PinnedMemory>(world, device, bytes);
    case 5: return std::make_shared<RegisteredMemory>(world, device, bytes);
    case 6: return std::make_shared<MappedMemory>(world, device);
    case 7:
      if (SharedPoolMemory::exists(device)) return std::make_shared<SharedPoolMemory>(world, device, bytes);
      [[fallthrough]];
    default: return makeDeviceMemory(world, device, bytes);
  }
}

inline void Memory::writeValue() {
  const int inSlot = world.pickSlot(device);
  const size_t at = world.pick(words());
  const Word value = world.pick(UINT32_MAX);
  const auto target = reinterpret_cast<CUdeviceptr>(use(inSlot)) + at * sizeof(Word);
  CALL(cuStreamWriteValue32, world.enter(inSlot), target, value, 0);
  setWord(at, value);
}

// Copies the whole of it or a part, from memory of the same device or, as a peer copy, of another.
inline void Memory::copyFrom(Memory& from) {
  const size_t count = 1 + world.pick(std::min(bytes(), from.bytes()));
  const size_t at = world.pick(bytes() - count + 1), fromAt = world.pick(from.bytes() - count + 1);
  const int inSlot = world.pickSlot(device);
  char *source = from.use(inSlot) + fromAt, *target = use(inSlot) + at;
  cudaStream_t stream = world.enter(inSlot);
  CHECK(device == from.device ? cudaMemcpyAsync(target, source, count, cudaMemcpyDefault, stream)
                              : cudaMemcpyPeerAsync(target, device, source, from.device, count, stream));
  std::memcpy(wanted.data() + at, from.wanted.data() + fromAt, count);
}

inline void Memory::act() {
  const int inSlot = world.pickSlot(device);
  const size_t at = world.pick(words()), count = 1 + world.pick(std::min<size_t>(words() - at, 500));
  switch (world.pick(6)) {
    case 0: return fill(at, 1 + world.pick(bytes() - at), static_cast<unsigned char>(world.pick(256)), inSlot);
    case 1: return upload(at, 1 + world.pick(bytes() - at), inSlot);
    case 2:
      if (isPlain) return writeValue();
      [[fallthrough]];
    case 3: {
      auto from =
          world.pickObject<Memory>([&](auto& one) { return &one != this && (one.device == device || (one.isPlain && isPlain)); });
      return from ? copyFrom(*from) : fillAll();
    }
    case 4:
      if (isWritten) return turn(at, count, world.pick(UINT32_MAX), inSlot);
      return fillAll();
    default: {
      auto from = world.pickObject<Memory>([&](auto& one) { return &one != this && one.device == device && one.isRead; });
      if (!from || !isWritten) return fillAll();
      const size_t fewer = std::min(count, from->words());
      return mix(*from, at, world.pick(from->words() - fewer + 1), fewer, world.pick(1000), inSlot);
    }
  }
}

// A table of addresses in device memory, through which a kernel reads other memory.
__global__ void gatherWords(const uint32_t* const* table, uint32_t count, uint32_t* out) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum = sum * 31 + *table[i];
  *out = sum;
}

class Pointers : public Object {
 public:
  Pointers(World& world, int device) : world(world), device(device) {
    table = makeDeviceMemory(world, device, most * sizeof(void*));
    out = makeDeviceMemory(world, device, sizeof(uint32_t));
  }
  // Keeps the addresses over as many steps as the memory lives, however often the worker changes meanwhile.
  void act() override {
    const bool isWhole = std::none_of(kept.begin(), kept.end(), [](auto& one) { return one.expired(); });
    if (isWhole && !kept.empty() && !world.oneIn(4)) return gather();
    kept.clear();
    const int slot = world.pickSlot(device);
    std::vector<void*> addresses;
    for (size_t i = 0; i < most; ++i)
      if (auto one = world.pickObject<Memory>([&](auto& one) { return one.device == device && one.isPlain; })) {
        addresses.push_back(one->use(slot));
        kept.push_back(one);
      }
    void* target = table->use(slot);
    if (!kept.empty())
      CHECK(cudaMemcpyAsync(target, addresses.data(), addresses.size() * sizeof(void*), cudaMemcpyDefault, world.enter(slot)));
  }
  bool isRight(Digest& digest) override { return out->isRight(digest); }

 private:
  static constexpr size_t most = 6;

  void gather() {
    const int slot = world.pickSlot(device);
    uint32_t sum = 0;
    for (auto& one : kept) {
      auto memory = one.lock();
      memory->use(slot);
      sum = sum * 31 + memory->word(0);
    }
    auto* target = reinterpret_cast<uint32_t*>(out->use(slot));
    auto* addresses = reinterpret_cast<const uint32_t* const*>(table->use(slot));
    gatherWords<<<1, 1, 0, world.enter(slot)>>>(addresses, static_cast<uint32_t>(kept.size()), target);
    CHECK(cudaGetLastError());
    out->setWord(0, sum);
  }

  World& world;
  const int device;
  std::shared_ptr<Memory> table, out;
  std::vector<std::weak_ptr<Memory>> kept;
};

inline std::shared_ptr<Object> makePointers(World& world) { return std::make_shared<Pointers>(world, world.pickDevice()); }

}  // namespace history
