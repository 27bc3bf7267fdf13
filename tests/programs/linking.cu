// Modules linked at run time: functions and variables of one are used by another, with the linker's logs.
#include "driver-entry.h"

#include <malloc.h>

#include <cstring>
#include <fstream>
#include <string>

const std::string header = ".version 7.5\n.target sm_75\n.address_size 64\n";

// twice(x), which counts its calls in the variable `calls`.
const std::string callee = header + R"(
.visible .global .align 4 .u32 calls = 40;
.visible .func (.param .b32 result) twice(.param .b32 x)
{
  .reg .b32 %x, %calls;
  ld.global.u32 %calls, [calls];
  add.u32 %calls, %calls, 1;
  st.global.u32 [calls], %calls;
  ld.param.b32 %x, [x];
  shl.b32 %x, %x, 1;
  st.param.b32 [result], %x;
  ret;
}
)";
// out[0] = twice(x), out[1] = calls.
const std::string caller = header + R"(
.extern .global .align 4 .u32 calls;
.extern .func (.param .b32 result) twice(.param .b32 x);
.visible .entry apply(.param .u64 out, .param .u32 x)
{
  .reg .b32 %x;
  .reg .b64 %out;
  ld.param.u64 %out, [out];
  ld.param.u32 %x, [x];
  cvta.to.global.u64 %out, %out;
  { .param .b32 a; .param .b32 r; st.param.b32 [a], %x; call (r), twice, (a); ld.param.b32 %x, [r]; }
  st.global.u32 [%out], %x;
  ld.global.u32 %x, [calls];
  st.global.u32 [%out+4], %x;
  ret;
}
)";

// A link with a log, and the results of its calls.
class Link {
 public:
  Link() {
    CALL(cuLinkCreate, 3, options, values, &state);
  }
  ~Link() { CALL(cuLinkDestroy, state); }
  Link(const Link&) = delete;

  CUresult add(const std::string& text, const char* name) {
    return DRIVER(cuLinkAddData)(state, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()), text.size() + 1, name, 0, nullptr,
                                 nullptr);
  }
  CUresult addFile(const std::string& path) { return DRIVER(cuLinkAddFile)(state, CU_JIT_INPUT_PTX, path.c_str(), 0, nullptr, nullptr); }
  CUresult complete(void*& image) {
    size_t bytes = 0;
    CUresult result = DRIVER(cuLinkComplete)(state, &image, &bytes);
    return result == CUDA_SUCCESS && bytes == 0 ? CUDA_ERROR_UNKNOWN : result;
  }
  std::string said() const { return log; }

 private:
  CUlinkState state = nullptr;
  char log[4096] = "";
  // CUDA writes to them as long as the link lives.
  CUjit_option options[3] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL};
  void* values[3] = {log, reinterpret_cast<void*>(sizeof log), reinterpret_cast<void*>(3)};
};

bool applies(CUfunction apply, unsigned x, unsigned calls) {
  DeviceArray<unsigned> out(2);
  unsigned* data = out;
  void* parameters[] = {&data, &x};
  CALL(cuLaunchKernel, apply, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  auto got = out.download();
  return EXPECT(got[0] == 2 * x) & EXPECT(got[1] == calls);
}

bool refusesWrongUses() {
  void* image = nullptr;
  bool ok = true;
  {
    Link undefined;  // twice() is undefined
    ok &= EXPECT(undefined.add(caller, "caller.ptx") == CUDA_SUCCESS) & EXPECT(undefined.complete(image) != CUDA_SUCCESS) &
          EXPECT(undefined.said().find("twice") != std::string::npos);
  }
  {
    Link broken;
    ok &= EXPECT(broken.add(header + "nonsense", "broken.ptx") != CUDA_SUCCESS) & EXPECT(!broken.said().empty());
    ok &= EXPECT(broken.complete(image) == CUDA_SUCCESS);  // without the failing input
  }
  CUlinkState state = reinterpret_cast<CUlinkState>(0x77);
  ok &= EXPECT(DRIVER(cuLinkComplete)(state, &image, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  ok &= EXPECT(DRIVER(cuLinkCreate)(0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  Link empty;
  return ok & EXPECT(empty.addFile("/nowhere/at-all") == CUDA_ERROR_FILE_NOT_FOUND);
}

// After a link has ended, no copy of its inputs remains in the program's process.
bool givesInputsBack() {
  constexpr size_t inputBytes = 1 << 20;
  const std::string input = callee + "//" + std::string(inputBytes, ' ');
  const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  bool ok = true;
  for (int i = 0; i < 16; ++i) {
    Link link;
    ok &= EXPECT(link.add(input, "callee.ptx") == CUDA_SUCCESS);
  }
  return ok & EXPECT(mallinfo2().uordblks + mallinfo2().hblkhd < before + 8 * inputBytes);
}

// Output options of a module load, which return numbers.
bool tellsTheTime(const void* image) {
  char info[256] = "";
  CUjit_option options[] = {CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_MAX_REGISTERS};
  void* values[] = {reinterpret_cast<void*>(~uintptr_t{0}), info, reinterpret_cast<void*>(sizeof info), reinterpret_cast<void*>(64)};
  CUmodule module;
  CALL(cuModuleLoadDataEx, &module, image, 4, options, values);
  CALL(cuModuleUnload, module);
  float milliseconds = -1;
  std::memcpy(&milliseconds, &values[0], sizeof milliseconds);
  CUjit_option unknown[] = {static_cast<CUjit_option>(9999)};
  return EXPECT(milliseconds >= 0) &
         EXPECT(DRIVER(cuModuleLoadDataEx)(&module, image, 1, unknown, values) == CUDA_ERROR_INVALID_VALUE);
}

int main() {
  CHECK(cudaFree(nullptr));
  bool ok = refusesWrongUses() & givesInputsBack();
  const std::string path = "/tmp/vgpu-linking-" + std::to_string(getpid()) + ".ptx";
  std::ofstream(path) << callee;
  CUmodule module;
  CUfunction apply;
  {
    Link link;
    std::string text = caller;
    ok &= EXPECT(link.add(text, "caller.ptx") == CUDA_SUCCESS);
    std::fill(text.begin(), text.end(), '?');  // the link has copied the text

    pausePoint();  // in the middle of the link

    void* image = nullptr;
    ok &= EXPECT(link.addFile(path) == CUDA_SUCCESS) && EXPECT(link.complete(image) == CUDA_SUCCESS);
    if (!ok) return verdict("linking", false);
    CALL(cuModuleLoadData, &module, image);
    ok &= tellsTheTime(image);
  }
  unlink(path.c_str());
  CALL(cuModuleGetFunction, &apply, module, "apply");
  ok &= applies(apply, 21, 41) & applies(apply, 4, 42);
  return verdict("linking", ok);
}
