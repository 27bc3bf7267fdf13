// Launches from kernels: the part of the driver's own objects and limits in them.
#include <elf.h>

#include <array>

#include "container-samples.h"
#include "device-launch-text.h"
#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

// A device with a module of such kernels, and memory for their notes.
class Launching : public Device {
 public:
  explicit Launching(const std::string& kernels) : module(load((std::string(launchHeader) + kernels).c_str())) {}
  CUresult run(uint32_t what = 0) {
    const CUresult launched = launch(function(module, "k"), nullptr, 1, notes, what);
    return launched == CUDA_SUCCESS ? cuCtxSynchronize() : launched;
  }
  std::vector<uint32_t> noted() {
    std::vector<uint32_t> words(read(notes));
    if (!words.empty()) REQUIRE_CUDA(cuMemcpyDtoH(words.data(), notes + 4, words.size() * sizeof(uint32_t)));
    return words;
  }

  CUmodule module;
  CUdeviceptr notes = allocate(1 << 16);
};

// Launches kernel "shared" with so many bytes of dynamic shared memory; notes whether it got a parameter buffer.
std::string launchWithShared(int bytes) {
  return launchingKernel(
      "k",
      "{ .param .b64 k1; .param .align 4 .b8 g1[12]; .param .align 4 .b8 b1[12]; .param .b32 s1; .param .b64 r1; mov.u64 %d1, "
      "shared;"
      "st.param.b64 [k1], %d1; st.param.b32 [g1], 1; st.param.b32 [g1+4], 1; st.param.b32 [g1+8], 1; st.param.b32 [b1], 1;"
      "st.param.b32 [b1+4], 1; st.param.b32 [b1+8], 1; st.param.b32 [s1], " +
          std::to_string(bytes) +
          "; call.uni (r1), __cudaCDP2GetParameterBufferV2, (k1, g1, b1, s1); ld.param.b64 %d2, [r1]; }"
          "setp.ne.u64 %p, %d2, 0; selp.u32 %r1, 1, 0, %p;" +
          takeNote("%r1"));
}

// A relocatable device object that defines a function or only refers to it, as a fatbinary member for another GPU.
std::string machineCode(std::string_view function, bool defined) {
  const std::string names = std::string("\0", 1) + std::string(function) + '\0' + ".symtab" + '\0';
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  header.e_shoff = sizeof header + 2 * sizeof(Elf64_Sym) + (names.size() + 7) / 8 * 8;
  std::array<Elf64_Sym, 2> symbols{};
  symbols[1].st_name = 1;
  symbols[1].st_shndx = defined ? 1 : SHN_UNDEF;
  std::array<Elf64_Shdr, 3> sections{};
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sizeof header + sizeof symbols;
  sections[1].sh_size = names.size();
  sections[2].sh_type = SHT_SYMTAB;
  sections[2].sh_link = 1;
  sections[2].sh_offset = sizeof header;
  sections[2].sh_size = sizeof symbols;
  sections[2].sh_entsize = sizeof(Elf64_Sym);
  std::string bytes;
  append(bytes, header);
  append(bytes, symbols);
  bytes += names;
  bytes.resize(header.e_shoff);
  append(bytes, sections);
  return fatbinary(member(2, 80, bytes, Packing::zstd) +
                   member(1, 121, ".version 9.0\n.target sm_121\n.address_size 64\n", Packing::zstd));
}

}  // namespace

TEST_CASE("the context's limit of pending launches applies to tail launches") {
  Launching device(launchingKernel("k", launchOf("note", "1", 3) + takeNote("%r9") + launchOf("note", "1", 3) + takeNote("%r9")));
  REQUIRE_CUDA(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 1));
  CHECK_CUDA(device.run());
  CHECK(device.noted() == std::vector<uint32_t>{0, 69, 1});
}

TEST_CASE("a child may use as much dynamic shared memory as the host has allowed its kernel") {
  const std::string shared = launchingKernel("shared", "");
  for (const bool isAllowed : {false, true}) {
    Launching device(shared + launchWithShared(100'000));
    CUfunction child = function(device.module, "shared");
    if (isAllowed) REQUIRE_CUDA(cuFuncSetAttribute(child, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100'000));
    CHECK_CUDA(device.run());
    CHECK(device.noted() == std::vector<uint32_t>{isAllowed});
  }
}

TEST_CASE("a fault in a child is a fault of the context") {
  Launching device(launchingKernel("child", "mov.u64 %d1, 64; st.u32 [%d1], 1;") +
                   launchingKernel("k", launchOf("note", "1") + launchOf("child", "0") + launchOf("note", "2")));
  CHECK_ANSWER(device.run(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_ANSWER(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("cudaMalloc() in a kernel allocates from the device's heap, and a child can use the memory") {
  const std::string declared =
      ".extern .func (.param .b32 r) __cudaCDP2Malloc (.param .b64 p, .param .b64 n);\n"
      ".extern .func (.param .b32 r) __cudaCDP2Free (.param .b64 p);\n";
  const auto malloc = [](const char* bytes) {
    return std::string(
               "{ .param .b64 p1; .param .b64 n1; .param .b32 e1; add.u64 %d1, %d0, 65528; st.param.b64 [p1], %d1; st.param.b64 "
               "[n1], ") +
           bytes + "; call.uni (e1), __cudaCDP2Malloc, (p1, n1); ld.param.b32 %r9, [e1]; }\n" + takeNote("%r9");
  };
  const auto free = [](const char* pointer) {
    return std::string("{ .param .b64 p1; .param .b32 e1; st.param.b64 [p1], ") + pointer +
           "; call.uni (e1), __cudaCDP2Free, (p1); ld.param.b32 %r9, [e1]; }\n" + takeNote("%r9");
  };
  Launching device(declared +
                   launchingKernel("child", "ld.u64 %d2, [%d0+65528]; st.u32 [%d2], 1234; ld.u32 %r1, [%d2];" + takeNote("%r1") +
                                                free("%d2") + free("%d2") + free("0")) +
                   launchingKernel("k", malloc("0") + malloc("1099511627776") + malloc("40") + launchOf("child", "0")));
  CHECK_CUDA(device.run());
  CHECK(device.noted() == std::vector<uint32_t>{1, 2, 0, 1234, 0, 17, 0});
}

TEST_CASE("CUDA's device runtime among the inputs of a link is replaced by the emulated device's own") {
  const std::string text = std::string(launchHeader) + launchingKernel("k", launchOf("note", "3"));
  for (const bool isRuntime : {true, false}) {
    Device device;
    CUlinkState state = nullptr;
    REQUIRE_CUDA(cuLinkCreate(0, nullptr, nullptr, &state));
    std::string runtime = machineCode("__cudaCDP2LaunchDeviceV2", isRuntime);
    const CUresult added =
        cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, runtime.data(), runtime.size(), "libcudadevrt", 0, nullptr, nullptr);
    CHECK_EQ(nameOf(added), isRuntime ? "CUDA_SUCCESS" : "CUDA_ERROR_NO_BINARY_FOR_GPU");
    REQUIRE_CUDA(
        cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()), text.size() + 1, "k", 0, nullptr, nullptr));
    void* image = nullptr;
    REQUIRE_CUDA(cuLinkComplete(state, &image, nullptr));
    CUmodule module = nullptr;
    REQUIRE_CUDA(cuModuleLoadData(&module, image));
    const CUdeviceptr notes = device.allocate(64);
    REQUIRE_CUDA(launch(function(module, "k"), nullptr, 1, notes, uint32_t{0}));
    REQUIRE_CUDA(cuCtxSynchronize());
    CHECK_EQ(device.read(notes + 4), 3);
    REQUIRE_CUDA(cuLinkDestroy(state));
  }
}

TEST_CASE("the device runtime provides the grid group of a cooperative launch: handle, ranks, size and barrier") {
  // Three times, every thread adds 1 to out[0] and checks the sum behind the barrier. At the end out has the number of wrong sums, the
  // highest rank, and the size.
  const std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.extern .func (.param .b32 error) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags);
.extern .func (.param .b32 error) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param .b64 handle);
.extern .func (.param .b32 error) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param .b64 handle);
.visible .entry k(.param .u64 p)
{
  .local .align 4 .b32 mine; .reg .b32 %r<12>; .reg .b64 %d<8>; .reg .pred %p<4>;
  ld.param.u64 %d0, [p];
  mov.u64 %d2, mine; cvta.local.u64 %d2, %d2;
  { .param .b32 s; .param .b64 h; st.param.b32 [s], 1; call.uni (h), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %d1, [h]; }
  { .param .b64 a, b, h; .param .b32 e; st.param.b64 [a], %d2; st.param.b64 [b], 0; st.param.b64 [h], %d1;
    call.uni (e), cudaCGGetSize, (a, b, h); ld.param.b32 %r9, [e]; }
  ld.u32 %r1, [%d2];
  { .param .b64 a, b, h; .param .b32 e; st.param.b64 [a], %d2; st.param.b64 [b], 0; st.param.b64 [h], %d1;
    call.uni (e), cudaCGGetRank, (a, b, h); ld.param.b32 %r9, [e]; }
  ld.u32 %r2, [%d2];
  mov.u32 %r3, 0; mov.u32 %r4, 0;
again:
  add.u32 %r3, %r3, 1;
  atom.global.add.u32 %r5, [%d0], 1;
  { .param .b64 h; .param .b32 f, e; st.param.b64 [h], %d1; st.param.b32 [f], 0;
    call.uni (e), cudaCGSynchronize, (h, f); ld.param.b32 %r9, [e]; }
  add.u32 %r4, %r4, %r9;
  ld.volatile.global.u32 %r6, [%d0];
  mul.lo.u32 %r7, %r3, %r1;
  setp.ne.u32 %p0, %r6, %r7;
  @%p0 add.u32 %r4, %r4, 1;
  { .param .b64 h; .param .b32 f, e; st.param.b64 [h], %d1; st.param.b32 [f], 0;
    call.uni (e), cudaCGSynchronizeGrid, (h, f); ld.param.b32 %r9, [e]; }
  setp.lt.u32 %p0, %r3, 3;
  @%p0 bra again;
  atom.global.add.u32 %r5, [%d0+4], %r4;
  atom.global.max.u32 %r5, [%d0+8], %r2;
  atom.global.max.u32 %r5, [%d0+12], %r1;
  ret;
}
)";
  Device device;
  CUlinkState state = nullptr;
  REQUIRE_CUDA(cuLinkCreate(0, nullptr, nullptr, &state));
  std::string runtime = machineCode("__cudaCDP2LaunchDeviceV2", true);
  REQUIRE_CUDA(cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()), text.size() + 1, "k", 0, nullptr, nullptr));
  REQUIRE_CUDA(cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, runtime.data(), runtime.size(), "libcudadevrt", 0, nullptr, nullptr));
  void* image = nullptr;
  CUmodule module = nullptr;
  REQUIRE_CUDA(cuLinkComplete(state, &image, nullptr));
  REQUIRE_CUDA(cuModuleLoadData(&module, image));
  CUdeviceptr out = device.allocate(16);
  void* parameters[] = {&out};
  REQUIRE_CUDA(cuLaunchCooperativeKernel(function(module, "k"), 2, 3, 1, 8, 4, 2, 0, nullptr, parameters));
  REQUIRE_CUDA(cuCtxSynchronize());
  CHECK_EQ(device.read(out), 3 * 384);
  CHECK_EQ(device.read(out + 4), 0);
  CHECK_EQ(device.read(out + 8), 383);
  CHECK_EQ(device.read(out + 12), 384);
  // Other launches have no grid group: its barrier is an error.
  REQUIRE_CUDA(cuMemsetD32(out, 0, 4));
  REQUIRE_CUDA(cuLaunchKernel(function(module, "k"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  REQUIRE_CUDA(cuCtxSynchronize());
  CHECK_EQ(device.read(out + 4), 3);
  REQUIRE_CUDA(cuLinkDestroy(state));
}
