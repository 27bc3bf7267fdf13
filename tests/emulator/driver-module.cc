#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

struct Global {
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

Global global(CUmodule module, const char* name) {
  Global found;
  REQUIRE_CUDA(cuModuleGetGlobal(&found.address, &found.bytes, module, name));
  return found;
}

// Addresses of two modules' variables after `before` was called.
template <class Before>
std::array<CUdeviceptr, 2> placement(Before before) {
  Device device;
  before(device);
  CUmodule first = device.load(), second = device.load();
  return {global(first, "counter").address, global(second, "slots").address};
}

}  // namespace

TEST_CASE("a module's functions and variables are found by name") {
  Device device;
  CUmodule module = device.load();
  CHECK_EQ(global(module, "counter").bytes, 4);
  CHECK_EQ(global(module, "slots").bytes, 128);
  CUfunction none = nullptr;
  CHECK_ANSWER(cuModuleGetFunction(&none, module, "absent"), CUDA_ERROR_NOT_FOUND);
  CUdeviceptr address = 0;
  CHECK_ANSWER(cuModuleGetGlobal(&address, nullptr, module, "absent"), CUDA_ERROR_NOT_FOUND);
  unsigned count = 0;
  CHECK_CUDA(cuModuleGetFunctionCount(&count, module));
  CHECK_EQ(count, 5);
  std::array<CUfunction, 5> all{};
  CHECK_CUDA(cuModuleEnumerateFunctions(all.data(), 5, module));
  const char* name = nullptr;
  CHECK_CUDA(cuFuncGetName(&name, all[4]));
  CHECK_NE(name, nullptr);
}

TEST_CASE("kernels and copies see a module's variables at one address") {
  Device device;
  CUmodule module = device.load();
  Global counter = global(module, "counter");
  CHECK_EQ(device.read(counter.address), 0);
  REQUIRE_CUDA(launch(function(module, "increment"), nullptr, 64, counter.address));
  CHECK_EQ(device.read(counter.address), 64);
}

TEST_CASE("images are placed alike whatever memory was allocated before") {
  auto plain = placement([](Device&) {});
  auto crowded = placement([](Device& device) {
    for (int i = 0; i < 20; ++i) device.allocate(3 << 20);
  });
  CHECK_EQ(plain, crowded);
  CHECK_EQ(plain[0] & 0xfffff00000000000, 0x300000000000);
}

TEST_CASE("images are placed alike in another process") {
  auto here = placement([](Device&) {});
  std::array<int, 2> ends{};
  REQUIRE_EQ(pipe(ends.data()), 0);
  std::string self = "/proc/self/exe";
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 3);
    setenv("VGPU_TEST_PLACEMENT", "3", 1);
    execl(self.c_str(), "test", "--test-case=placement for another process", "--no-skip", nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::array<CUdeviceptr, 2> there{};
  CHECK_EQ(read(ends[0], there.data(), sizeof there), sizeof there);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(here, there);
}

TEST_CASE("placement for another process" * doctest::skip()) {
  const char* descriptor = std::getenv("VGPU_TEST_PLACEMENT");
  REQUIRE_NE(descriptor, nullptr);
  auto places = placement([](Device& device) { device.allocate(100 << 20); });
  CHECK_EQ(write(std::atoi(descriptor), places.data(), sizeof places), sizeof places);
}

TEST_CASE("the next module takes the place of an unloaded one, though a graph still refers to it") {
  Device device;
  CUmodule first = device.load();
  CUdeviceptr place = global(first, "counter").address;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  REQUIRE_CUDA(launch(function(first, "empty"), stream, 1));
  REQUIRE_CUDA(cuStreamEndCapture(stream, &graph));
  REQUIRE_CUDA(cuModuleUnload(first));
  CHECK_EQ(global(device.load(), "counter").address, place);
  CHECK_CUDA(cuGraphDestroy(graph));
}

TEST_CASE("bad PTX is refused with the reason in the log") {
  Device device;
  std::array<char, 512> log{};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  CUmodule module = nullptr;
  CHECK_ANSWER(cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(", 2,
                                  options, values),
               CUDA_ERROR_INVALID_PTX);
  CHECK_GT(std::string(log.data()).size(), 0);
  CHECK_EQ(module, nullptr);
}

TEST_CASE("kernels of a library can be launched and its variables found") {
  Device device;
  CUlibrary library = nullptr;
  REQUIRE_CUDA(cuLibraryLoadData(&library, kernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel store = nullptr, again = nullptr;
  REQUIRE_CUDA(cuLibraryGetKernel(&store, library, "store"));
  CHECK_CUDA(cuLibraryGetKernel(&again, library, "store"));
  CHECK_EQ(store, again);
  CUdeviceptr counter = 0;
  size_t bytes = 0;
  REQUIRE_CUDA(cuLibraryGetGlobal(&counter, &bytes, library, "counter"));
  REQUIRE_CUDA(launch(reinterpret_cast<CUfunction>(store), nullptr, 1, counter, 31u));
  CHECK_EQ(device.read(counter), 31);
  size_t offset = 0;
  CHECK_CUDA(cuKernelGetParamInfo(store, 1, &offset, &bytes));
  CHECK_EQ(offset, 8);
  CUfunction made = nullptr;
  CHECK_CUDA(cuKernelGetFunction(&made, store));
  REQUIRE_CUDA(launch(made, nullptr, 1, counter, 32u));
  CHECK_EQ(device.read(counter), 32);
  CHECK_CUDA(cuLibraryUnload(library));
  CHECK_ANSWER(launch(reinterpret_cast<CUfunction>(store), nullptr, 1, counter, 1u), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("kernels, copies and the host see the same managed variable") {
  Device device;
  CUmodule module = device.load(R"(
.version 8.0
.target sm_75
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 shared = 5;
.visible .global .align 4 .u32 plain;
.visible .entry add(.param .u32 v)
{
  .reg .b32 %v, %old;
  ld.param.u32 %v, [v];
  atom.global.add.u32 %old, [shared], %v;
  st.global.u32 [plain], %old;
  ret;
}
)");
  Global shared = global(module, "shared");
  CHECK_EQ(shared.bytes, 4);
  auto* const here = reinterpret_cast<volatile uint32_t*>(shared.address);
  CHECK_EQ(*here, 5);
  *here = 7;
  REQUIRE_CUDA(launch(function(module, "add"), nullptr, 2, 10u));
  REQUIRE_CUDA(cuCtxSynchronize());
  CHECK_EQ(*here, 27);
  CHECK_EQ(device.read(shared.address), 27);
  unsigned managed = 0;
  CHECK_CUDA(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, shared.address));
  CHECK_EQ(managed, 1);
  CHECK_CUDA(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, global(module, "plain").address));
  CHECK_EQ(managed, 0);
  CHECK_ANSWER(cuMemFree(shared.address), CUDA_ERROR_INVALID_VALUE);
  REQUIRE_CUDA(cuModuleUnload(module));
  CHECK_ANSWER(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, shared.address),
               CUDA_ERROR_INVALID_VALUE);
}
