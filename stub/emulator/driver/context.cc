#include <unistd.h>

#include "stub/emulator/driver/context.h"

#include <cstdio>

#include "stub/emulator/driver/driver.h"

namespace vgpu::emulator::api {
namespace {

std::atomic<uint64_t> nextContextId{1};

constexpr uint64_t variableGranule = 256;  // as on hardware

}  // namespace

Context::Context(Driver& driver, Device& device, unsigned flags, bool primary)
    : driver(driver),
      device(device),
      primary(primary),
      id(nextContextId++),
      flags(flags),
      peers(device.bit()),
      streams(*this, driver.scheduler),
      variables(device, driver.space.pieces, variableGranule),
      managedVariables(device, driver.space.managed, hostPageBytes),
      heaps(device, driver.space.heaps, hostPageBytes),
      limits{{CU_LIMIT_STACK_SIZE, 1024},
             {CU_LIMIT_PRINTF_FIFO_SIZE, 8650752},
             {CU_LIMIT_MALLOC_HEAP_SIZE, size_t{8} << 20},
             {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
             {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
             {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 11796480},
             {CU_LIMIT_SHMEM_SIZE, 232448},
             {CU_LIMIT_CIG_ENABLED, 0}} {}

void Context::fail(CUresult code) {
  int none = CUDA_SUCCESS;
  std::atomic<int>& ended = driver.settings.faultsAreFinal ? driver.fault : firstFailure;
  ended.compare_exchange_strong(none, code);
}

CUresult Context::failure() const {
  int own = firstFailure.load(std::memory_order_acquire);
  return static_cast<CUresult>(own != CUDA_SUCCESS ? own : driver.fault.load(std::memory_order_acquire));
}

void Context::check() const {
  if (!alive) refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  if (CUresult code = failure()) refuse(code);
}

size_t Context::limit(CUlimit which) const {
  require(which >= 0 && which < CU_LIMIT_MAX);
  std::lock_guard lock(outputMutex);
  auto at = limits.find(which);
  if (at == limits.end()) refuse(CUDA_ERROR_UNSUPPORTED_LIMIT);
  return at->second;
}

void Context::setLimit(CUlimit which, size_t value) {
  constexpr size_t mostStack = 512 * 1024;  // CUDA C++ Programming Guide, Compute Capabilities: local memory per thread
  require(which >= 0 && which < CU_LIMIT_MAX && (which != CU_LIMIT_STACK_SIZE || value <= mostStack));
  const auto mostPersisting = static_cast<size_t>(device.attribute(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE));
  require(which != CU_LIMIT_PERSISTING_L2_CACHE_SIZE || value <= mostPersisting);
  std::lock_guard lock(outputMutex);
  auto at = limits.find(which);
  if (at == limits.end()) refuse(CUDA_ERROR_UNSUPPORTED_LIMIT);
  at->second = value;
}

// The buffer is a ring: when it is full, the oldest lines that have not been shown are dropped, whole lines only.
void Context::print(const std::string& text) {
  std::lock_guard lock(outputMutex);
  output += text;
  size_t most = limits.at(CU_LIMIT_PRINTF_FIFO_SIZE);
  if (output.size() <= most) return;
  size_t end = output.find('\n', output.size() - most - 1);
  output.erase(0, end == std::string::npos ? output.size() - most : end + 1);
}

void Context::flushOutput() {
  std::lock_guard lock(outputMutex);
  if (output.empty()) return;
  std::fwrite(output.data(), 1, output.size(), stdout);
  std::fflush(stdout);
  output.clear();
}

void Context::synchronize() {
  refuseDuringCapture(driver);
  streams.waitForAll();
  flushOutput();
  check();
}

Context::Heap Context::heap() {
  std::call_once(heapMade, [this] {
    try {
      deviceHeap = std::make_unique<PlacedRange>(*this, heaps, limit(CU_LIMIT_MALLOC_HEAP_SIZE));
    } catch (const Refusal&) {
      // A device without room for a heap: malloc() in kernels returns null.
    }
  });
  if (!deviceHeap) return {};
  return {deviceHeap->base(), deviceHeap->bytes()};
}

Context::~Context() = default;

// Everything of the context ends here. The registry holds the last references, because no work is in flight.
void Context::destroy() {
  alive = false;
  streams.waitForAll();
  flushOutput();
  auto mine = [this](const auto& object) { return &object.context == this; };
  for (const auto& green : driver.greenContexts.removeIf([this](const GreenContext& each) { return each.context.get() == this; }))
    green->alive = false;
  driver.streams.removeIf(mine);
  driver.events.removeIf(mine);
  driver.functions.removeIf(mine);
  for (const std::shared_ptr<LoadedModule>& module : driver.modules.removeIf(mine)) module->release();
  driver.links.removeIf(mine);
  driver.textures.removeOf(*this);
  driver.textureReferences.removeIf(mine);
  deviceHeap.reset();
  driver.mipmappedArrays.removeIf(mine);
  driver.arrays.removeIf(mine);
  driver.libraries.forEach([this](Library& library) {
    std::lock_guard lock(library.mutex);
    library.modules.erase(id);
  });
  for (const Mapping& mapping : driver.space.mappingsOf(*this)) {
    if (mapping.kind == MappingKind::plain) {
      driver.freePlain(mapping);
    } else if (mapping.kind != MappingKind::image) {
      driver.space.unmap(mapping.base, mapping.kind, CUDA_ERROR_UNKNOWN);
    }
  }
}

namespace {

// The main thread's stack is never destroyed, because static destructors, which run after thread-local ones, may still make calls.
struct StackOwner {
  std::vector<std::shared_ptr<Context>>* stack = new std::vector<std::shared_ptr<Context>>;
  ~StackOwner() {
    if (gettid() != getpid()) delete stack;
  }
};

}  // namespace

std::vector<std::shared_ptr<Context>>& contextStack() {
  thread_local StackOwner owner;
  return *owner.stack;
}

Context& currentContext() {
  initializedDriver();
  auto& stack = contextStack();
  if (stack.empty() || !stack.back()) refuse(CUDA_ERROR_INVALID_CONTEXT);
  // A primary context that was destroyed and made again stays current for threads that had it current.
  if (!stack.back()->alive && stack.back()->primary) {
    stack.back() = stack.back()->driver.contexts.get(stack.back()->handle);
  }
  stack.back()->check();
  return *stack.back();
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

namespace {

// The current context in any state, for entries that still return values after work has failed.
Context& anyCurrentContext() {
  initializedDriver();
  auto& stack = contextStack();
  if (stack.empty() || !stack.back()) refuse(CUDA_ERROR_INVALID_CONTEXT);
  return *stack.back();
}

void checkFlags(unsigned flags) {
  constexpr unsigned known = CU_CTX_FLAGS_MASK;
  require((flags & ~known) == 0);
}

CUresult createContext(CUcontext* handle, unsigned flags, CUdevice ordinal) {
  return enterDriver([&](Driver& driver) {
    require(handle != nullptr);
    checkFlags(flags);
    std::shared_ptr<Context> context = driver.createContext(driver.device(ordinal), flags, false);
    contextStack().push_back(context);
    *handle = context->handle;
  });
}

}  // namespace

CUresult CUDAAPI cuCtxCreate_v2(CUcontext* handle, unsigned flags, CUdevice device) {
  return createContext(handle, flags, device);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext* handle, CUexecAffinityParam* parameters, int count, unsigned flags,
                                CUdevice device) {
  if (parameters != nullptr || count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return createContext(handle, flags, device);
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext* handle, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
  if (parameters && (parameters->numExecAffinityParams != 0 || parameters->execAffinityParams != nullptr)) {
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  }
  if (parameters && parameters->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return createContext(handle, flags, device);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext handle) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<Context> context = driver.contexts.get(handle);
    if (context->primary) refuse(CUDA_ERROR_INVALID_CONTEXT);
    if (!context->alive.exchange(false)) refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    context->destroy();
    auto& stack = contextStack();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
  });
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext handle) {
  return enterDriver([&](Driver& driver) {
    auto& stack = contextStack();
    std::shared_ptr<Context> context = handle ? driver.contexts.get(handle) : nullptr;
    if (!stack.empty()) stack.pop_back();
    if (context) stack.push_back(std::move(context));
  });
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* handle) {
  return enterDriver([&](Driver&) {
    require(handle != nullptr);
    auto& stack = contextStack();
    *handle = stack.empty() || !stack.back() ? nullptr : stack.back()->handle;
  });
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext handle) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<Context> context = driver.contexts.get(handle);
    if (!context->alive) refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    contextStack().push_back(std::move(context));
  });
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* handle) {
  return enterDriver([&](Driver&) {
    auto& stack = contextStack();
    if (stack.empty()) refuse(CUDA_ERROR_INVALID_CONTEXT);
    if (handle) *handle = stack.back()->handle;
    stack.pop_back();
  });
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return enterAlways([&] {
    require(device != nullptr);
    *device = anyCurrentContext().device.ordinal();
  });
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  if (handle == nullptr) return cuCtxGetDevice(device);
  return enterDriver([&](Driver& driver) {
    require(device != nullptr);
    *device = driver.contexts.get(handle)->device.ordinal();
  });
}

CUresult CUDAAPI cuCtxSynchronize() {
  return enterContext([](Context& context) { context.synchronize(); });
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext handle) {
  if (handle == nullptr) return cuCtxSynchronize();
  return enterDriver([&](Driver& driver) { driver.contexts.get(handle)->synchronize(); });
}

CUresult CUDAAPI cuCtxGetFlags(unsigned* flags) {
  return enterAlways([&] {
    require(flags != nullptr);
    *flags = anyCurrentContext().flags;
  });
}

CUresult CUDAAPI cuCtxSetFlags(unsigned flags) {
  return enterContext([&](Context& context) {
    checkFlags(flags);
    context.flags = flags;
  });
}

CUresult CUDAAPI cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return enterDriver([&](Driver& driver) {
    require(id != nullptr);
    *id = (handle ? *driver.contexts.get(handle) : anyCurrentContext()).id;
  });
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  return enterDriver([&](Driver& driver) {
    require(version != nullptr);
    if (handle) driver.contexts.get(handle);
    *version = 3020;  // the version of every context made by cuCtxCreate_v2 or later
  });
}

CUresult CUDAAPI cuCtxGetLimit(size_t* value, CUlimit limit) {
  return enterContext([&](Context& context) {
    require(value != nullptr);
    *value = context.limit(limit);
  });
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value) {
  return enterContext([&](Context& context) { context.setLimit(limit, value); });
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache* config) {
  return enterContext([&](Context& context) {
    require(config != nullptr);
    *config = static_cast<CUfunc_cache>(context.cacheConfig.load());
  });
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config) {
  return enterContext([&](Context& context) {
    require(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    context.cacheConfig = config;
  });
}

CUresult CUDAAPI cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return enterContext([&](Context&) {
    require(config != nullptr);
    *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  });
}

CUresult CUDAAPI cuCtxSetSharedMemConfig(CUsharedconfig config) {
  // Banks have a fixed size: the request is accepted and has no effect, as on every device since Maxwell.
  return enterContext([&](Context&) { require(config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE); });
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return enterContext([&](Context&) {
    if (least) *least = leastPriority;
    if (greatest) *greatest = greatestPriority;
  });
}

CUresult CUDAAPI cuCtxResetPersistingL2Cache() {
  return enterContext([](Context&) {});
}

CUresult CUDAAPI cuCtxGetExecAffinity(CUexecAffinityParam*, CUexecAffinityType) {
  return enterContext([](Context&) { return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY; });
}

CUresult CUDAAPI cuCtxDetach(CUcontext handle) { return cuCtxDestroy_v2(handle); }
