// Linking modules, and the JIT's log. Results and texts are those of driver 580 on an H200, unless a comment says otherwise.
#include <array>

#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

const std::string header = ".version 8.0\n.target sm_75\n.address_size 64\n";
// Stores f's result to *p.
const std::string callsF = R"(
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r; .reg .b64 %d;
  { .param .b32 v; call (v), f, (); ld.param.b32 %r, [v]; }
  ld.param.u64 %d, [p];
  st.global.u32 [%d], %r;
  ret;
}
)";
const std::string externF = ".extern .func (.param .b32 v) f();\n";
std::string f(int value, const std::string& linkage = "") {
  return linkage + " .func (.param .b32 v) f()\n{ st.param.b32 [v], " + std::to_string(value) + "; ret; }\n";
}
const std::string readsX =
    ".visible .entry k(.param .u64 p)\n{ .reg .b32 %r; .reg .b64 %d; ld.param.u64 %d, [p]; ld.global.u32 %r, [x]; "
    "st.global.u32 [%d], %r; ret; }\n";

class Linking {
 public:
  Linking() {
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    REQUIRE_CUDA(cuLinkCreate(2, options, values, &state));
  }
  ~Linking() { cuLinkDestroy(state); }
  Linking(const Linking&) = delete;
  CUresult add(const char* name, const std::string& body) { return addText(name, header + body); }
  CUresult addText(const char* name, const std::string& text) {
    return cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()), text.size() + 1, name, 0, nullptr,
                         nullptr);
  }
  CUresult complete() {
    size_t bytes = 0;
    return cuLinkComplete(state, &linkedImage, &bytes);
  }
  std::string log() const { return logText.data(); }
  const void* image() const { return linkedImage; }

 private:
  std::array<char, 4096> logText{};
  // The log is written until the link is destroyed; the option for its size then receives the number of bytes written.
  void* values[2] = {logText.data(), reinterpret_cast<void*>(logText.size())};
  CUlinkState state = nullptr;
  void* linkedImage = nullptr;
};

// The word that kernel `name` of the linked modules stores.
uint32_t result(Device& device, const std::vector<std::string>& modules, const char* name = "k") {
  Linking link;
  for (const std::string& text : modules) REQUIRE_CUDA(link.add("piece", text));
  CHECK_CUDA(link.complete());
  CHECK_EQ(link.log(), "");
  CUmodule module = nullptr;
  REQUIRE_CUDA(cuModuleLoadData(&module, link.image()));
  CUdeviceptr word = device.allocate(4);
  REQUIRE_CUDA(launch(function(module, name), nullptr, 1, word));
  return device.read(word);
}

}  // namespace

TEST_CASE("functions and variables are found across modules, in either order") {
  Device device;
  CHECK_EQ(result(device, {externF + callsF, f(41, ".visible")}), 41);
  CHECK_EQ(result(device, {f(42, ".visible"), externF + callsF}), 42);
  CHECK_EQ(result(device, {".extern .global .u32 x;\n" + readsX, ".visible .global .u32 x = 43;\n"}), 43);
  CHECK_EQ(result(device, {".visible .global .u32 x = 44;\n", ".extern .global .u32 x;\n" + readsX}), 44);
  // An address in an initializer.
  CHECK_EQ(result(device, {".extern .global .u32 y;\n.visible .global .u64 at = y;\n",
                           ".visible .global .u32 y = 9;\n.visible .global .u32 x = 45;\n" + readsX}),
           45);
}

TEST_CASE("a module's static symbols are its own, though another module uses the same name") {
  Device device;
  CHECK_EQ(result(device, {f(1) + callsF, f(2) + ".global .u32 x = 7;\n"}), 1);
  CHECK_EQ(result(device, {f(2) + ".global .u32 x = 7;\n", f(1) + callsF}), 1);
  CHECK_EQ(
      result(device, {".global .u32 x = 3;\n" + readsX, ".global .u32 x = 4;\n", ".visible .global .u32 x = 5;\n"}), 3);
}

TEST_CASE("weak definitions are overridden by strong ones and by earlier weak ones") {
  Device device;
  CHECK_EQ(result(device, {externF + callsF, f(1, ".weak"), f(2, ".visible")}), 2);
  CHECK_EQ(result(device, {externF + callsF, f(2, ".visible"), f(1, ".weak")}), 2);
  CHECK_EQ(result(device, {externF + callsF, f(3, ".weak"), f(4, ".weak")}), 3);
  CHECK_EQ(result(device, {readsX + ".weak .global .u32 x = 1;\n", ".visible .global .u32 x = 2;\n"}), 2);
}

TEST_CASE("modules for different targets are linked for the newest of them") {
  Device device;
  Linking link;
  std::string newer = ".version 9.0\n.target sm_90\n.address_size 64\n" + f(5, ".visible");
  REQUIRE_CUDA(link.add("old", externF + callsF));
  REQUIRE_CUDA(link.addText("new", newer));
  REQUIRE_CUDA(link.complete());
  const std::string text = static_cast<const char*>(link.image());
  CHECK(text.starts_with(".version 9.0\n.target sm_90\n"));
  CHECK_EQ(text.find(".target sm_75"), std::string::npos);
}

TEST_CASE("undefined symbols are named when the link is completed") {
  Device device;
  struct Case {
    std::string one, two, said;
  };
  for (const Case& each : {Case{externF + callsF, ".global .u32 y;", "Undefined reference to 'f' in 'one'"},
                           Case{externF + callsF, f(1), "Undefined reference to 'f' in 'one'"},
                           Case{".extern .global .u32 x;\n" + readsX, "", "Undefined reference to 'x' in 'one'"}}) {
    Linking link;
    REQUIRE_CUDA(link.add("one", each.one));
    REQUIRE_CUDA(link.add("two", each.two));
    CHECK_ANSWER(link.complete(), CUDA_ERROR_UNKNOWN);
    CHECK_EQ(link.log(), "error   : " + each.said);
    CHECK_EQ(link.image(), nullptr);
  }
  Linking unused;
  REQUIRE_CUDA(unused.add("one", externF + ".visible .entry k()\n{ ret; }\n"));
  CHECK_CUDA(unused.complete());
}

TEST_CASE("a definition that conflicts with an earlier one is refused when it is added") {
  Device device;
  struct Case {
    std::string one, two, said;
  };
  const std::string x = ".visible .global .u32 x;\n";
  for (const Case& each :
       {Case{f(1, ".visible"), f(1, ".visible"), "Multiple definition of 'f' in 'two', first defined in 'one'"},
        Case{x, ".visible .global .u32 x = 2;\n", "Multiple definition of 'x' in 'two', first defined in 'one'"},
        Case{".extern .global .u32 x;\n" + readsX, ".visible .global .u64 x;\n",
             "Size doesn't match for 'x' in 'two', first specified in 'one'"},
        Case{".extern .global .u32 x;\n" + readsX, ".visible .const .u32 x;\n",
             "Memory space doesn't match for 'x' in 'two', first specified in 'one'"},
        // The driver names the second module twice.
        Case{externF + callsF, ".visible .func f(.param .b32 p)\n{ ret; }\n",
             "Prototype doesn't match for 'f' in 'two', first defined in 'one'"}}) {
    Linking link;
    REQUIRE_CUDA(link.add("one", each.one));
    CHECK_ANSWER(link.add("two", each.two), CUDA_ERROR_INVALID_SOURCE);
    CHECK_EQ(link.log(), "error   : " + each.said);
    CHECK_ANSWER(link.complete(), CUDA_ERROR_INVALID_SOURCE);
  }
  Linking kernels;
  REQUIRE_CUDA(kernels.add("one", ".visible .entry k()\n{ ret; }\n"));
  CHECK_ANSWER(kernels.add("two", ".visible .entry k()\n{ ret; }\n"), CUDA_ERROR_UNKNOWN);
  CHECK_EQ(kernels.log(), "error   : Multiple definition of 'k' in 'two', first defined in 'one'");
  CHECK_ANSWER(kernels.complete(), CUDA_ERROR_UNKNOWN);
}

TEST_CASE("text that cannot be parsed is refused when it is added, with its name and line") {
  Device device;
  Linking link;
  CHECK_ANSWER(link.add("broken", "nonsense"), CUDA_ERROR_INVALID_PTX);
  CHECK_NE(link.log().find("broken: PTX line 4"), std::string::npos);
  REQUIRE_CUDA(link.complete());  // without the refused text
}

TEST_CASE("reports name the lines of the module that they concern") {
  Device device;
  Linking link;
  REQUIRE_CUDA(link.add("one", ".file 1 \"one.cu\"\n.visible .entry a()\n{\n.loc 1 10 0\ntrap;\n}\n"));
  REQUIRE_CUDA(link.add("two", ".file 1 \"two.cu\"\n.visible .entry b()\n{\n.loc 1 20 0\ntrap;\n}\n"));
  REQUIRE_CUDA(link.complete());
  const std::string text = static_cast<const char*>(link.image());
  CHECK_NE(text.find(".file 3 \"two.cu\""), std::string::npos);
  CHECK_NE(text.find(".loc 3 20"), std::string::npos);
}

TEST_CASE("a module that calls an undefined function is refused with the compiler's message") {
  Device device;
  std::array<char, 512> log{};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  CUmodule module = nullptr;
  const std::string text = header + externF + callsF;
  CHECK_ANSWER(cuModuleLoadDataEx(&module, text.c_str(), 2, options, values), CUDA_ERROR_INVALID_PTX);
  CHECK_EQ(std::string(log.data()), "ptxas fatal   : Unresolved extern function 'f'");
}
