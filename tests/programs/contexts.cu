// Contexts that the program creates besides the primary one: each owns the objects made in it, and however a context ends, exactly these
// end with it.
#include <cstring>
#include <thread>

#include "driver-entry.h"

namespace {

// A variable with a value and a kernel, to detect whether the module was unloaded.
const char* const ptx = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 mark = 41;
.visible .entry nothing() { ret; }
)";

constexpr size_t bytes = 16 << 20;  // large enough to show in the device's free memory

// A context that is created but not current.
class Context {
 public:
  Context() {
    using Create = CUresult(CUDAAPI*)(CUcontext*, CUctxCreateParams*, unsigned, CUdevice);
    CUcontext popped;
    check(findInDriver<Create>("cuCtxCreate")(&handle, nullptr, 0, 0), "cuCtxCreate");
    CALL(cuCtxPopCurrent, &popped);
  }
  void destroy() { CALL(cuCtxDestroy, handle); }
  operator CUcontext() const { return handle; }

 private:
  CUcontext handle = nullptr;
};

// Makes a context current for this object's lifetime.
class Current {
 public:
  explicit Current(CUcontext context) { CALL(cuCtxPushCurrent, context); }
  ~Current() {
    CUcontext popped;
    CALL(cuCtxPopCurrent, &popped);
  }
};

CUcontext currentContext() {
  CUcontext current = nullptr;
  CALL(cuCtxGetCurrent, &current);
  return current;
}

// One object of each kind, made in one context.
struct Belongings {
  CUdeviceptr memory = 0, managed = 0, mark = 0;
  void* pinned = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUarray array = nullptr;
  CUsurfObject surface = 0;
  CUcontext owner;
  unsigned value;

  Belongings(CUcontext owner, unsigned value) : owner(owner), value(value) {
    Current current(owner);
    size_t size;
    CUDA_ARRAY3D_DESCRIPTOR shape{64, 1, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST};
    CUDA_RESOURCE_DESC resource{};
    CALL(cuMemAlloc, &memory, bytes);
    CALL(cuMemAllocHost, &pinned, 4096);
    CALL(cuMemAllocManaged, &managed, 4096, CU_MEM_ATTACH_GLOBAL);
    CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CALL(cuEventCreate, &event, CU_EVENT_DEFAULT);
    CALL(cuModuleLoadData, &module, ptx);
    CALL(cuModuleGetFunction, &function, module, "nothing");
    CALL(cuModuleGetGlobal, &mark, &size, module, "mark");
    CALL(cuArray3DCreate, &array, &shape);
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    CALL(cuSurfObjectCreate, &surface, &resource);
    CALL(cuMemsetD32Async, memory, value, bytes / 4, stream);
    CALL(cuStreamSynchronize, stream);
  }

  // Uses each object and checks the result.
  bool areWhole() const {
    Current current(owner);
    unsigned known = 0, back = 0;
    CUcontext ofMemory = nullptr;
    CUDA_RESOURCE_DESC resource{};
    CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
    CALL(cuMemcpyDtoHAsync, pinned, memory + bytes - 4, 4, stream);
    CALL(cuEventRecord, event, stream);
    CALL(cuEventSynchronize, event);
    CALL(cuMemcpyDtoH, &known, mark, 4);
    CALL(cuMemcpyHtoA, array, 0, pinned, 4);
    CALL(cuMemcpyAtoH, &back, array, 0, 4);
    CALL(cuSurfObjectGetResourceDesc, &resource, surface);
    CALL(cuPointerGetAttribute, &ofMemory, CU_POINTER_ATTRIBUTE_CONTEXT, memory);
    return EXPECT(back == value) & EXPECT(known == 41) & EXPECT(isThere(managed)) & EXPECT(ofMemory == owner) &
           EXPECT(resource.res.array.hArray == array);
  }

  // Whether the driver knows an address. For destroyed objects CUDA specifies no result.
  static bool isThere(CUdeviceptr address) {
    unsigned type = 0;
    return DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS;
  }
  bool areGone() const {
    return EXPECT(!isThere(memory)) & EXPECT(!isThere(managed)) & EXPECT(!isThere(mark)) &
           EXPECT(!isThere(reinterpret_cast<CUdeviceptr>(pinned)));
  }
};

bool isDestroyed() {
  CUdeviceptr unused;
  return EXPECT(DRIVER(cuMemAlloc)(&unused, 256) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

// A thread whose current context is destroyed by another thread.
bool otherThreadsAreTold(Context& doomed, CUcontext other) {
  std::atomic<int> step{0};
  bool ok = true;
  std::thread thread([&] {
    CALL(cuCtxSetCurrent, doomed);
    CUdeviceptr memory;
    CALL(cuMemAlloc, &memory, 256);
    step = 1;
    while (step != 2) usleep(100);
    ok &= isDestroyed();
    CALL(cuCtxSetCurrent, other);
    CALL(cuMemAlloc, &memory, 256);
    CALL(cuMemFree, memory);
  });
  while (step != 1) usleep(100);
  doomed.destroy();
  step = 2;
  thread.join();
  return ok;
}

// Neither the number of contexts nor of those used by the runtime is limited: together they allocate more than the device has, and a
// destroyed context's memory is free again.
bool manyInARow() {
  size_t available = 0, total = 0;
  CALL(cuMemGetInfo, &available, &total);
  for (int i = 0; i < 40; ++i) {
    Context context;
    int* data = nullptr;
    CALL(cuCtxPushCurrent, context);
    CHECK(cudaMalloc(&data, total / 20));
    CHECK(cudaMemset(data, 0, 1 << 20));
    context.destroy();
  }
  return true;
}

bool destroyingEndsOne(Belongings& ofPrimary) {
  CUcontext primary = currentContext();
  CUdeviceptr pooled = 0;
  Context a, b;
  Belongings ofA(a, 2), ofB(b, 3);
  CALL(cuCtxPushCurrent, a);
  CALL(cuMemAllocAsync, &pooled, 1 << 20, nullptr);  // from a pool, which belongs to the device, not to a context
  CALL(cuCtxSetCurrent, b);
  bool ok = ofPrimary.areWhole() & ofA.areWhole() & ofB.areWhole();
  pausePoint();

  // One that is not current, and one that is.
  a.destroy();
  ok &= ofA.areGone() & ofPrimary.areWhole() & ofB.areWhole() &
        EXPECT(Belongings::isThere(pooled)) & EXPECT(currentContext() == b);
  b.destroy();
  ok &= ofB.areGone() & ofPrimary.areWhole() & EXPECT(Belongings::isThere(pooled)) & EXPECT(currentContext() == primary);
  CHECK(cudaFree(reinterpret_cast<void*>(pooled)));
  return ok;
}

// A reset of the primary context, and its last release. For a thread that has it current it counts as destroyed until it is retained again.
bool endsOfPrimary(Belongings& ofPrimary) {
  CUcontext primary = currentContext();
  Context other;
  Belongings ofOther(other, 4);
  CHECK(cudaDeviceReset());
  bool ok = ofPrimary.areGone() & ofOther.areWhole();
  unsigned flags;
  int active = 1;
  CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);
  ok &= EXPECT(active == 0);

  CALL(cuDevicePrimaryCtxRetain, &primary, 0);
  CALL(cuCtxSetCurrent, primary);
  Belongings released(primary, 5);
  ok &= released.areWhole();
  CALL(cuDevicePrimaryCtxRelease, 0);
  ok &= released.areGone() & ofOther.areWhole() & isDestroyed();
  CALL(cuDevicePrimaryCtxRetain, &primary, 0);
  CALL(cuCtxSetCurrent, primary);
  Belongings again(primary, 6);
  ok &= again.areWhole() & ofOther.areWhole();
  other.destroy();
  return ok & ofOther.areGone() & again.areWhole();
}

bool isRefused(CUresult got, CUresult expected, const char* what) {
  if (got != expected) std::fprintf(stderr, "%s: expected error %d, got %d\n", what, expected, got);
  return got == expected;
}

// An event can be recorded only in streams of its own context, but any stream can wait for it.
bool eventsAreOfOneContext(const Belongings& ofPrimary) {
  Context other;
  Belongings own(other, 7);
  const auto record = DRIVER(cuEventRecord);
  bool ok;
  CALL(cuEventRecord, ofPrimary.event, CU_STREAM_PER_THREAD);
  {
    Current current(other);
    CALL(cuEventRecord, own.event, own.stream);
    CALL(cuEventRecord, own.event, nullptr);
    CALL(cuStreamWaitEvent, ofPrimary.stream, own.event, 0);
    // The thread's default stream, which has been used in the primary context before.
    using ContextOf = CUresult(CUDAAPI*)(CUstream, CUcontext*, CUgreenCtx*);
    CUcontext ofDefault = nullptr;
    CUgreenCtx green;
    CALL(cuEventRecord, own.event, CU_STREAM_PER_THREAD);
    check(findInDriver<ContextOf>("cuStreamGetCtx")(CU_STREAM_PER_THREAD, &ofDefault, &green), "cuStreamGetCtx");
    ok = EXPECT(ofDefault == other);
    ok &= isRefused(record(own.event, ofPrimary.stream), CUDA_ERROR_INVALID_HANDLE, "a record in another context's stream");
    ok &= isRefused(record(ofPrimary.event, nullptr), CUDA_ERROR_INVALID_HANDLE, "a record in the current context's legacy stream");
    for (CUstream stream : {own.stream, ofPrimary.stream, CU_STREAM_PER_THREAD, CU_STREAM_LEGACY}) CALL(cuStreamSynchronize, stream);
  }
  other.destroy();
  return ok;
}

// The scheduling flags exclude each other; a context keeps its creation flags, and a primary context always allows mapped memory.
bool flagsAreChecked() {
  using Create = CUresult(CUDAAPI*)(CUcontext*, CUctxCreateParams*, unsigned, CUdevice);
  const auto create = findInDriver<Create>("cuCtxCreate");
  const auto ofPrimary = DRIVER(cuDevicePrimaryCtxSetFlags);
  CUcontext context;
  unsigned flags = 0;
  bool ok = true;
  auto has = [&](unsigned expected) {
    CALL(cuCtxGetFlags, &flags);
    return EXPECT(flags == expected);
  };
  for (unsigned wrong : {3, 5, 6, 7, 0x1000}) {
    ok &= isRefused(create(&context, nullptr, wrong, 0), CUDA_ERROR_INVALID_VALUE, "a context that waits in two ways");
    ok &= isRefused(ofPrimary(0, wrong), CUDA_ERROR_INVALID_VALUE, "a primary context that waits in two ways");
  }
  ok &= isRefused(ofPrimary(0, CU_CTX_MAP_HOST), CUDA_ERROR_INVALID_VALUE, "mapped memory of a primary context");
  check(create(&context, nullptr, CU_CTX_SCHED_YIELD | CU_CTX_USER_COREDUMP_ENABLE, 0), "cuCtxCreate");
  ok &= has(CU_CTX_SCHED_YIELD | CU_CTX_COREDUMP_ENABLE);
  CALL(cuCtxDestroy, context);
  check(create(&context, nullptr, 0, 0), "cuCtxCreate");
  ok &= has(0);
  CALL(cuCtxSetFlags, CU_CTX_SCHED_SPIN | CU_CTX_MAP_HOST);
  ok &= has(CU_CTX_SCHED_SPIN) & isRefused(DRIVER(cuCtxSetFlags)(3), CUDA_ERROR_INVALID_VALUE, "two ways to wait") & has(CU_CTX_SCHED_SPIN);
  CALL(cuCtxDestroy, context);
  CALL(cuDevicePrimaryCtxSetFlags, 0, CU_CTX_SCHED_BLOCKING_SYNC);
  return ok & has(CU_CTX_SCHED_BLOCKING_SYNC | CU_CTX_MAP_HOST);
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));  // the runtime retains the primary context and makes it current
  Belongings ofPrimary(currentContext(), 1);
  bool ok = destroyingEndsOne(ofPrimary);
  Context doomed;
  ok &= otherThreadsAreTold(doomed, currentContext()) & manyInARow() & eventsAreOfOneContext(ofPrimary) & flagsAreChecked() &
        ofPrimary.areWhole() & endsOfPrimary(ofPrimary);
  return verdict("contexts", ok);
}
