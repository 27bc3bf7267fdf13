// Every function of CUDA's driver and runtime, called with each handle that it must refuse: one that never existed, one of an object
// that is destroyed or of another kind, an address of the program's own memory. The call fails, all objects still work, and the
// program goes on. It also goes on after null for each handle and each pointer, which many functions accept, and after values that
// no enumeration has. Natively such calls may crash a program, so this runs in a session only.
//
// The list of calls is generated: wrong-arguments-driver.inc and -runtime.inc, ENTRY(name) for each supported function. Compiled as C++.
#include <cuda_runtime_api.h>
#define __CUDA_RUNTIME_H__  // avoids its C++ overloads, which make function names ambiguous

#include "exported-entry.h"

#include <cudaProfiler.h>
#include <cuda_profiler_api.h>
#include <signal.h>

#include <tuple>
#include <utility>

namespace {

// One object of each kind.
struct Objects {
  CUcontext context;
  CUstream stream;
  CUevent event;
  CUmodule module;
  CUfunction function;
  CUlibrary library;
  CUkernel kernel;
  CUarray array;
  CUmipmappedArray mipmappedArray;
  CUtexref textureReference;
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec graphExec;
  CUmemoryPool pool;
  CUuserObject userObject;
  CUgreenCtx greenContext;
  CUdevResourceDesc resources;
  CUlinkState link;
};

void hostFunction(void*) {}

Objects makeObjects(CUcontext current) {
  const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";
  Objects made{};
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = shape.Height = 16;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  CUmemPoolProps pool{};
  pool.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  pool.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUdevResource all{};
  bool ok = WORKS(cuCtxCreate_v4, &made.context, nullptr, 0, 0) && WORKS(cuCtxSetCurrent, current);
  ok = ok && WORKS(cuStreamCreate, &made.stream, CU_STREAM_NON_BLOCKING) && WORKS(cuEventCreate, &made.event, 0);
  ok = ok && WORKS(cuModuleLoadData, &made.module, image) && WORKS(cuModuleGetFunction, &made.function, made.module, "nothing");
  ok = ok && WORKS(cuLibraryLoadData, &made.library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  ok = ok && WORKS(cuLibraryGetKernel, &made.kernel, made.library, "nothing") && WORKS(cuArray3DCreate_v2, &made.array, &shape);
  ok = ok && WORKS(cuMipmappedArrayCreate, &made.mipmappedArray, &shape, 2) && WORKS(cuTexRefCreate, &made.textureReference);
  ok = ok && WORKS(cuGraphCreate, &made.graph, 0) && WORKS(cuGraphAddEmptyNode, &made.node, made.graph, nullptr, 0);
  ok = ok && WORKS(cuGraphInstantiateWithFlags, &made.graphExec, made.graph, 0) && WORKS(cuMemPoolCreate, &made.pool, &pool);
  ok = ok && WORKS(cuUserObjectCreate, &made.userObject, nullptr, hostFunction, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  ok = ok && WORKS(cuDeviceGetDevResource, 0, &all, CU_DEV_RESOURCE_TYPE_SM) && WORKS(cuDevResourceGenerateDesc, &made.resources, &all, 1);
  ok = ok && WORKS(cuGreenCtxCreate, &made.greenContext, made.resources, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  ok = ok && WORKS(cuLinkCreate_v2, 0, nullptr, nullptr, &made.link);
  if (!ok) std::exit(1);
  return made;
}

// All but the resource descriptor, which cannot be destroyed.
bool destroy(Objects& made) {
  made.resources = nullptr;
  bool ok = WORKS(cuLinkDestroy, made.link) && WORKS(cuGreenCtxDestroy, made.greenContext);
  ok = ok && WORKS(cuUserObjectRelease, made.userObject, 1) && WORKS(cuMemPoolDestroy, made.pool);
  ok = ok && WORKS(cuGraphExecDestroy, made.graphExec) && WORKS(cuGraphDestroy, made.graph);
  ok = ok && WORKS(cuTexRefDestroy, made.textureReference) && WORKS(cuMipmappedArrayDestroy, made.mipmappedArray);
  ok = ok && WORKS(cuArrayDestroy, made.array) && WORKS(cuLibraryUnload, made.library) && WORKS(cuModuleUnload, made.module);
  return ok && WORKS(cuEventDestroy_v2, made.event) && WORKS(cuStreamDestroy_v2, made.stream) && WORKS(cuCtxDestroy_v2, made.context);
}

Objects living, destroyed;
void* another(const void* handle) { return handle == living.event ? static_cast<void*>(living.stream) : living.event; }

// The object for a handle's type. The runtime's array handles have their own types.
CUcontext of(const Objects& all, CUcontext) { return all.context; }
CUstream of(const Objects& all, CUstream) { return all.stream; }
CUevent of(const Objects& all, CUevent) { return all.event; }
CUmodule of(const Objects& all, CUmodule) { return all.module; }
CUfunction of(const Objects& all, CUfunction) { return all.function; }
CUlibrary of(const Objects& all, CUlibrary) { return all.library; }
CUkernel of(const Objects& all, CUkernel) { return all.kernel; }
CUarray of(const Objects& all, CUarray) { return all.array; }
CUmipmappedArray of(const Objects& all, CUmipmappedArray) { return all.mipmappedArray; }
CUtexref of(const Objects& all, CUtexref) { return all.textureReference; }
CUgraph of(const Objects& all, CUgraph) { return all.graph; }
CUgraphNode of(const Objects& all, CUgraphNode) { return all.node; }
CUgraphExec of(const Objects& all, CUgraphExec) { return all.graphExec; }
CUmemoryPool of(const Objects& all, CUmemoryPool) { return all.pool; }
CUuserObject of(const Objects& all, CUuserObject) { return all.userObject; }
CUgreenCtx of(const Objects& all, CUgreenCtx) { return all.greenContext; }
CUdevResourceDesc of(const Objects& all, CUdevResourceDesc) { return all.resources; }
CUlinkState of(const Objects& all, CUlinkState) { return all.link; }
cudaArray_t of(const Objects& all, cudaArray_t) { return reinterpret_cast<cudaArray_t>(all.array); }
cudaArray_const_t of(const Objects& all, cudaArray_const_t) { return reinterpret_cast<cudaArray_t>(all.array); }
cudaMipmappedArray_t of(const Objects& all, cudaMipmappedArray_t) { return reinterpret_cast<cudaMipmappedArray_t>(all.mipmappedArray); }
cudaMipmappedArray_const_t of(const Objects& all, cudaMipmappedArray_const_t) { return of(all, cudaMipmappedArray_t()); }
// No objects of these types exist, so only invalid handles are tried.
CUsurfref of(const Objects&, CUsurfref) { return nullptr; }
CUasyncCallbackHandle of(const Objects&, CUasyncCallbackHandle) { return nullptr; }
CUlogsCallbackHandle of(const Objects&, CUlogsCallbackHandle) { return nullptr; }

template <typename T, typename = void>
constexpr bool isHandle = false;
template <typename T>
constexpr bool isHandle<T, std::void_t<decltype(of(living, std::declval<T>()))>> = std::is_pointer_v<T>;

// `const HANDLE*`: an array of handles that a call reads.
template <typename T>
constexpr bool isHandles =
    std::is_pointer_v<T> && std::is_const_v<std::remove_pointer_t<T>> && isHandle<std::remove_const_t<std::remove_pointer_t<T>>>;

template <typename Function>
struct Harmless;
template <typename Result, typename... Arguments>
struct Harmless<Result (*)(Arguments...)> {
  static Result call(Arguments...) {
    if constexpr (!std::is_void_v<Result>) return Result();
  }
};

constexpr int mostParameters = 16;
constexpr size_t room = 4096;  // for any structure
alignas(64) char places[mostParameters][room];
alignas(64) char zeros[room], ones[room];

// A plausible value for a parameter that is not under test: a living object, `number`, or memory that the call can read or write.
template <typename T>
T plausible(size_t parameter, int number) {
  if constexpr (isHandle<T>) {
    return of(living, T());
  } else if constexpr (isHandles<T>) {
    using Handle = std::remove_const_t<std::remove_pointer_t<T>>;
    *reinterpret_cast<Handle*>(places[parameter]) = of(living, Handle());
    return reinterpret_cast<T>(places[parameter]);
  } else if constexpr (std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>) {
    return Harmless<T>::call;
  } else if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(reinterpret_cast<void*>(places[parameter]));
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    return static_cast<T>(number);
  } else {
    return T{};
  }
}

struct Sweep {
  CUcontext current;
  int calls = 0, failures = 0;

  // The present call, to find out which one crashes.
  static inline const char* function = "";
  static inline const char* value = "";
  static inline int parameter = 0;

  template <typename Result, typename... Parameters>
  void all(const char* name, Result (*call)(Parameters...)) {
    static_assert(sizeof...(Parameters) <= mostParameters);
    if constexpr (std::is_same_v<Result, CUresult> || std::is_same_v<Result, cudaError_t>) {
      function = name;
      each(call, std::index_sequence_for<Parameters...>());
    }
  }

 private:
  // Ends the capture into the living graph that a call with a null list of dependencies has begun.
  void endCapture() {
    CUstreamCaptureStatus status{};
    CUgraph graph = nullptr;
    WORKS(cuStreamIsCapturing, living.stream, &status);
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) WORKS(cuStreamEndCapture, living.stream, &graph);
  }

  template <typename Result, typename... Parameters, size_t... Index>
  void each([[maybe_unused]] Result (*call)(Parameters...), std::index_sequence<Index...>) {
    (one<Index>(call, std::index_sequence<Index...>()), ...);
  }

  template <size_t Which, typename Result, typename... Parameters, size_t... Index>
  void one([[maybe_unused]] Result (*call)(Parameters...), std::index_sequence<Index...> indices) {
    using T = std::tuple_element_t<Which, std::tuple<Parameters...>>;
    parameter = Which;
    value = "null";
    if constexpr (std::is_pointer_v<T>) wrong<Which>(call, indices, nullptr);
    if constexpr (isHandle<T>) {
      const T good = of(living, T()), ended = of(destroyed, T());
      handles<T>(good, ended, [&](T bad) { wrong<Which>(call, indices, bad); });
    } else if constexpr (isHandles<T>) {
      using Handle = std::remove_const_t<std::remove_pointer_t<T>>;
      const Handle good = of(living, Handle()), ended = of(destroyed, Handle());
      handles<Handle>(good, ended, [&](Handle bad) { wrong<Which>(call, indices, bad); });
    } else if constexpr (std::is_enum_v<T>) {
      value = "no value of the enumeration";
      for (int none : {-1, 4711, 0x7fffffff}) wrong<Which>(call, indices, static_cast<T>(none));
    }
  }

  template <typename Handle, typename Try>
  void handles(Handle good, Handle ended, Try attempt) {
    const std::pair<const char*, const void*> made[] = {
        {"a small number", reinterpret_cast<void*>(0x4)}, {"no address", reinterpret_cast<void*>(0x7ff0dead0000)},
        {"zeros of the program", zeros}, {"ones of the program", ones}, {"an object of another kind", another(good)},
        {"a destroyed object", ended}};
    for (auto [what, bad] : made) {
      value = what;
      if (bad != nullptr) attempt(reinterpret_cast<Handle>(const_cast<void*>(bad)));
    }
  }

  // A call with one wrong argument, for each of several numbers in the other parameters.
  template <size_t Which, typename Bad, typename Result, typename... Parameters, size_t... Index>
  void wrong(Result (*call)(Parameters...), std::index_sequence<Index...>, Bad bad) {
    using T = std::tuple_element_t<Which, std::tuple<Parameters...>>;
    constexpr bool isInArray = isHandles<T> && isHandle<Bad>, mustFail = isInArray || (isHandle<T> && isHandle<Bad>);
    for (int number : {0, 1}) {
      if (isInArray && number == 0) continue;  // an empty array
      std::memset(places, 0, sizeof places);
      std::tuple<std::remove_const_t<Parameters>...> arguments{plausible<std::remove_const_t<Parameters>>(Index, number)...};
      if constexpr (isInArray)
        *reinterpret_cast<Bad*>(places[Which]) = bad;
      else
        std::get<Which>(arguments) = bad;
      const Result result = std::apply(call, arguments);
      ++calls;
      // A copy or fill of zero bytes need not check its arguments. In 3D the size is in a structure.
      const bool mayBeEmpty = number == 0 || std::strstr(function, "3DAsync") != nullptr || std::strstr(function, "3DPeerAsync") != nullptr;
      if (result == Result(0) && mustFail && !mayBeEmpty) {
        ++failures;
        std::fprintf(stderr, "%s, parameter %d: %s is taken\n", function, parameter, value);
      }
      cudaGetLastError();
      WORKS(cuCtxSetCurrent, current);
      endCapture();
    }
  }
};

void callAll(Sweep& sweep) {
#undef ENTRY
#define ENTRY(name) sweep.all(#name, exported<decltype(&name)>(#name));
#include "wrong-arguments-driver.inc"
#undef ENTRY
#define ENTRY(name) sweep.all(#name, name);
#include "wrong-arguments-runtime.inc"
#undef ENTRY
#define ENTRY(name) exported<decltype(&name)>(#name)
}

void tell(int number) {
  char line[256];
  const int bytes = std::snprintf(line, sizeof line, "signal %d in %s, parameter %d: %s\n", number, Sweep::function,
                                  Sweep::parameter, Sweep::value);
  [[maybe_unused]] const ssize_t put = write(STDERR_FILENO, line, static_cast<size_t>(bytes));
  _exit(1);
}

// Each living object still works.
bool allLive(CUdeviceptr memory) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  CUarray level = nullptr;
  CUgraphNode node = nullptr;
  CUstream stream = nullptr;
  CUdevResource resource{};
  size_t count = 1;
  unsigned value = 0, flags = 0;
  bool ok = WORKS(cuCtxGetFlags, &flags) && WORKS(cuLaunchKernel, living.function, 1, 1, 1, 1, 1, 1, 0, living.stream, nullptr, nullptr);
  ok &= WORKS(cuLaunchKernel, reinterpret_cast<CUfunction>(living.kernel), 1, 1, 1, 1, 1, 1, 0, living.stream, nullptr, nullptr);
  ok &= WORKS(cuMemsetD32Async, memory, 7, 1, living.stream) && WORKS(cuEventRecord, living.event, living.stream);
  ok &= WORKS(cuEventSynchronize, living.event) && WORKS(cuMemcpyDtoH_v2, &value, memory, sizeof value) && EXPECT(value == 7);
  ok &= WORKS(cuArray3DGetDescriptor_v2, &shape, living.array) && EXPECT(shape.Width == 16);
  ok &= WORKS(cuMipmappedArrayGetLevel, &level, living.mipmappedArray, 1) && WORKS(cuTexRefSetFlags, living.textureReference, 0);
  ok &= WORKS(cuGraphGetNodes, living.graph, &node, &count) && EXPECT(node == living.node);
  ok &= WORKS(cuGraphLaunch, living.graphExec, living.stream) && WORKS(cuMemAllocFromPoolAsync, &memory, 64, living.pool, living.stream);
  ok &= WORKS(cuMemFreeAsync, memory, living.stream) && WORKS(cuUserObjectRetain, living.userObject, 1);
  ok &= WORKS(cuUserObjectRelease, living.userObject, 1);
  ok &= WORKS(cuGreenCtxStreamCreate, &stream, living.greenContext, CU_STREAM_NON_BLOCKING, 0) && WORKS(cuStreamDestroy_v2, stream);
  ok &= WORKS(cuGreenCtxGetDevResource, living.greenContext, &resource, CU_DEV_RESOURCE_TYPE_SM);
  return ok && WORKS(cuStreamSynchronize, living.stream) && WORKS(cuCtxSynchronize);
}

}  // namespace

int main() {
  for (int number : {SIGSEGV, SIGBUS, SIGABRT}) signal(number, tell);
  CUcontext current = nullptr;
  CUdeviceptr memory = 0;
  CHECK(cudaFree(nullptr));
  if (!WORKS(cuCtxGetCurrent, &current) || !WORKS(cuMemAlloc_v2, &memory, 64)) return 1;
  std::memset(ones, 0xff, sizeof ones);
  living = makeObjects(current);
  destroyed = makeObjects(current);
  if (!destroy(destroyed)) return 1;

  Sweep sweep{current};
  callAll(sweep);
  pausePoint();  // new objects are as before, and have no other object's handle
  callAll(sweep);
  const bool lives = allLive(memory) && destroy(living) && WORKS(cuMemFree_v2, memory);
  std::printf("%d calls with wrong arguments, %d taken\n", sweep.calls, sweep.failures);
  return EXPECT(sweep.calls > 20000) && sweep.failures == 0 && lives ? 0 : 1;
}
