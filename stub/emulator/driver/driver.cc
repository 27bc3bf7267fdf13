#include "stub/emulator/driver/driver.h"

#include <cstdio>
#include <cstdlib>

namespace vgpu::emulator::api {
namespace {

std::mutex initMutex;
std::atomic<Driver*> theDriver{nullptr};

}  // namespace

Driver::Driver(const Settings& settings) : settings(settings), primaries(static_cast<size_t>(settings.devices)) {
  for (int i = 0; i < settings.devices; ++i) {
    devices.push_back(std::make_unique<Device>(i, settings));
    pools.push_back(std::make_unique<DevicePool>(*devices.back(), space));
    auto pool = std::make_shared<MemoryPool>(*devices.back());
    pool->isDefault = true;
    memoryPools.add(pool);
    poolStates.push_back({pool, pool});
  }
  scheduler.startClock();
}

Device& Driver::device(CUdevice ordinal) {
  if (ordinal < 0 || ordinal >= deviceCount()) refuse(CUDA_ERROR_INVALID_DEVICE);
  return *devices[static_cast<size_t>(ordinal)];
}

std::shared_ptr<Context> Driver::createContext(Device& device, unsigned flags, bool primary, CUcontext handle) {
  if (int code = fault.load()) refuse(static_cast<CUresult>(code));
  auto context = std::make_shared<Context>(*this, device, flags, primary);
  if (handle) {
    formerPrimaries.push_back(contexts.get(handle));
    contexts.addAs(handle, context);
  } else {
    contexts.add(context);
  }
  return context;
}

std::shared_ptr<MemoryPool> Driver::currentPool(const Device& device) {
  std::lock_guard lock(poolMutex);
  return poolState(device).current;
}

void Driver::setCurrentPool(const Device& device, std::shared_ptr<MemoryPool> pool) {
  std::lock_guard lock(poolMutex);
  poolState(device).current = std::move(pool);
}

void Driver::forgetPool(const MemoryPool& pool) {
  std::lock_guard lock(poolMutex);
  PoolState& state = poolState(pool.device);
  if (state.current.get() == &pool) state.current = state.fallback;
}

void Driver::freePlain(const Mapping& mapping) {
  pool(*mapping.device).free(mapping.base);
  if (!mapping.pool) return;
  if (std::shared_ptr<MemoryPool> counted = memoryPools.find(mapping.pool)) counted->used -= mapping.bytes;
}

Driver& initializedDriver() {
  Driver* driver = theDriver.load(std::memory_order_acquire);
  if (!driver) refuse(CUDA_ERROR_NOT_INITIALIZED);
  return *driver;
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuInit(unsigned flags) {
  return enterAlways([&] {
    require(flags == 0);
    std::lock_guard lock(initMutex);
    if (theDriver) return;
    const char* text = std::getenv("VGPU_EMULATED");
    try {
      theDriver = std::make_unique<Driver>(parseSettings(text ? text : "")).release();
    } catch (const Refusal& refusal) {
      std::fprintf(stderr, "vgpu emulator: VGPU_EMULATED: %s\n", refusal.message.c_str());
      throw;
    }
  });
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
